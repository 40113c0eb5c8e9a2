//! What krafka says to calls that cannot mean anything.
use krafka::Kafka;
use std::{env::var, time::Duration};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kafka = Kafka::builder(var("SHAREPROOF_BOOTSTRAP")?).connect().await?;
    let consumer = kafka.share_consumer(var("SHAREPROOF_GROUP")?).build().await?;
    let polled = consumer.poll(Duration::from_secs(1)).await;
    println!("poll without a subscription: {:?}", polled.map(|found| found.len()));
    for topic in ["", "  "] {
        println!("subscribe to {topic:?}: {:?}", consumer.subscribe([topic]).await);
    }
    consumer.close().await?;
    match kafka.share_consumer("  ").build().await {
        Ok(blank) => {
            println!("subscribe in a blank group: {:?}", blank.subscribe([var("SHAREPROOF_TOPIC")?]).await);
            let polled = blank.poll(Duration::from_secs(3)).await;
            println!("poll in a blank group: {:?}", polled.map(|found| found.len()));
            println!("close: {:?}", blank.close().await);
        }
        Err(error) => println!("a blank group: {error:?}"),
    }
    Ok(())
}

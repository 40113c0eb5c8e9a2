//! A share consumer in implicit mode: polls until records come, and closes without another poll.
use krafka::Kafka;
use std::{env::var, time::Duration};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kafka = Kafka::builder(var("SHAREPROOF_BOOTSTRAP")?).connect().await?;
    let consumer = kafka.share_consumer(var("SHAREPROOF_GROUP")?).build().await?;
    consumer.subscribe([var("SHAREPROOF_TOPIC")?]).await?;
    loop {
        let records = consumer.poll(Duration::from_millis(500)).await?;
        if !records.is_empty() {
            println!("{} records, not processed yet", records.len());
            break;
        }
    }
    println!("close: {:?}", consumer.close().await);
    Ok(())
}

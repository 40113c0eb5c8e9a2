//! A share consumer in explicit mode: renews what came, polls for it again, and accepts it.
use krafka::{Kafka, share_consumer::AcknowledgementMode::Explicit};
use std::{env::var, time::Duration};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kafka = Kafka::builder(var("SHAREPROOF_BOOTSTRAP")?).connect().await?;
    let group = kafka.share_consumer(var("SHAREPROOF_GROUP")?);
    let consumer = group.acknowledgement_mode(Explicit).build().await?;
    consumer.subscribe([var("SHAREPROOF_TOPIC")?]).await?;
    let records = loop {
        let found = consumer.poll(Duration::from_millis(500)).await?;
        if !found.is_empty() {
            break found;
        }
    };
    for record in &records {
        println!("renew {}: {:?}", record.offset, consumer.renew(record));
    }
    println!("commit: {:?}", consumer.commit().await);
    println!("poll: {:?}", consumer.poll(Duration::from_secs(2)).await.map(|found| found.len()));
    for record in &records {
        println!("accept {}: {:?}", record.offset, consumer.ack(record));
    }
    println!("commit: {:?}", consumer.commit().await);
    consumer.close().await?;
    Ok(())
}

//! A share consumer in explicit mode: accepts what comes, and commits.
use krafka::{Kafka, share_consumer::AcknowledgementMode::Explicit};
use std::{env::var, time::Duration};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kafka = Kafka::builder(var("SHAREPROOF_BOOTSTRAP")?).connect().await?;
    let group = kafka.share_consumer(var("SHAREPROOF_GROUP")?);
    let consumer = group.acknowledgement_mode(Explicit).build().await?;
    consumer.subscribe([var("SHAREPROOF_TOPIC")?]).await?;
    for _ in 0..10 {
        for record in consumer.poll(Duration::from_millis(500)).await? {
            consumer.ack(&record)?;
        }
        println!("{:?}", consumer.commit().await);
    }
    consumer.close().await?;
    Ok(())
}

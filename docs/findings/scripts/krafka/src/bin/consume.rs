//! A share consumer in implicit mode: polls for some seconds and closes.
use krafka::Kafka;
use std::env::{args, var};
use std::time::{Duration, Instant};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = args().nth(1).map_or(6, |text| text.parse().unwrap());
    let kafka = Kafka::builder(var("SHAREPROOF_BOOTSTRAP")?).connect().await?;
    let consumer = kafka.share_consumer(var("SHAREPROOF_GROUP")?).build().await?;
    consumer.subscribe([var("SHAREPROOF_TOPIC")?]).await?;
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        match consumer.poll(Duration::from_millis(500)).await {
            Ok(records) => records.iter().for_each(|r| println!("record {}", r.offset)),
            Err(error) => println!("error {error}"),
        }
    }
    println!("close: {:?}", consumer.close().await);
    Ok(())
}

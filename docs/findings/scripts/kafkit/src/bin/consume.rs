//! A share consumer: polls for some seconds, accepts what comes, commits, and shuts down.
use kafkit_client::{AcknowledgeType, ConsumerConfig, KafkaShareConsumer};
use std::env::{args, var};
use std::time::{Duration, Instant};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = args().nth(1).map_or(6, |text| text.parse().unwrap());
    let servers = var("SHAREPROOF_BOOTSTRAP")?;
    let config = ConsumerConfig::new(servers.clone(), var("SHAREPROOF_GROUP")?)
        .with_bootstrap_servers(servers.split(',').map(str::to_string));
    let mut consumer = KafkaShareConsumer::connect(config).await?;
    consumer.subscribe(vec![var("SHAREPROOF_TOPIC")?]).await?;
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        match consumer.poll_for(Duration::from_millis(500)).await {
            Ok(records) => {
                for record in records.iter() {
                    println!("record {}", record.record.offset);
                    consumer.acknowledge(record, AcknowledgeType::Accept);
                }
            }
            Err(error) => println!("poll: {error}"),
        }
        if let Err(error) = consumer.commit_sync().await {
            println!("commit: {error}");
        }
    }
    println!("shutdown: {:?}", consumer.shutdown().await);
    Ok(())
}

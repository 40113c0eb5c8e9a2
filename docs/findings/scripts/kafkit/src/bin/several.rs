//! A share consumer of several partitions: prints when records come and when calls fail.
//! `several SECONDS grow` adds a partition after three seconds, with a record in it.
use kafkit_client::{
    AcknowledgeType, AdminConfig, ConsumerConfig, KafkaAdmin, KafkaMessage, KafkaProducer,
    KafkaShareConsumer, NewPartitions, ProducerConfig, ShareConsumerOptions,
};
use std::env::{args, var};
use std::time::{Duration, Instant};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = args().nth(1).map_or(15, |text| text.parse().unwrap());
    let servers = var("SHAREPROOF_BOOTSTRAP")?;
    let (mut grows, topic) = (args().nth(2).is_some(), var("SHAREPROOF_TOPIC")?);
    let config = ConsumerConfig::new(servers.clone(), var("SHAREPROOF_GROUP")?)
        .with_bootstrap_servers(servers.split(',').map(str::to_string));
    let began = Instant::now();
    let options = ShareConsumerOptions::default().with_acknowledgement_commit_callback(
        move |told| {
            for one in told {
                let result = one.error.as_deref().unwrap_or("done");
                let at = began.elapsed().as_secs_f32();
                println!("{at:6.2}  told of {}-{:?}: {result}", one.partition, one.offsets);
            }
        },
    );
    let mut consumer = KafkaShareConsumer::connect_with_options(config, options).await?;
    consumer.subscribe(vec![topic.clone()]).await?;
    while began.elapsed() < Duration::from_secs(seconds) {
        if grows && began.elapsed() > Duration::from_secs(3) {
            grows = false;
            let admin = KafkaAdmin::connect(AdminConfig::new(servers.clone())).await?;
            admin.create_partitions([(topic.clone(), NewPartitions::increase_to(2))]).await?;
            let producer = KafkaProducer::connect(ProducerConfig::new(servers.clone())).await?;
            let message = KafkaMessage::new("new").with_topic(topic.clone()).with_partition(1);
            println!("added partition 1: {:?}", producer.send_message(message).await?);
        }
        let asked = began.elapsed().as_secs_f32();
        match consumer.poll_for(Duration::from_millis(500)).await {
            Ok(records) => {
                let took = began.elapsed().as_secs_f32() - asked;
                for one in records.iter() {
                    let (record, count) = (&one.record, one.delivery_count);
                    println!(
                        "{asked:6.2}  {}-{}, delivery {count}, by a poll of {took:.1} s",
                        record.partition, record.offset
                    );
                    consumer.acknowledge(one, AcknowledgeType::Accept);
                }
            }
            Err(error) => println!("{asked:6.2}  poll: {error}"),
        }
        if let Err(error) = consumer.commit_sync().await {
            println!("{:6.2}  commit: {error}", began.elapsed().as_secs_f32());
        }
    }
    println!("shutdown: {:?}", consumer.shutdown().await);
    Ok(())
}

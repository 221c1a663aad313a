//! Publish and subscribe: topics, to which any number of threads listen, and a value of which only
//! the latest counts.
//!
//! # Prints
//! ```text
//! weather: rain, sun
//! weather: rain, sun
//! news: cloth is sold
//! the latest temperature is 21
//! ```

use selvedge::spawn;
use selvedge::sync::{Broadcaster, broadcast, watch};
use std::collections::HashMap;
use std::process::ExitCode;

fn main() -> ExitCode {
    selvedge::run_main(async {
        let mut topics: HashMap<&str, Broadcaster<String>> = HashMap::new();
        let mut subscribers = Vec::new();
        for topic in ["weather", "weather", "news"] {
            let mut listener = topics.entry(topic).or_insert_with(|| broadcast(16).0).listener();
            subscribers.push(spawn(async move {
                let mut heard = Vec::new();
                while let Ok(text) = listener.listen().await {
                    heard.push(text);
                }
                format!("{topic}: {}", heard.join(", "))
            }));
        }
        for (topic, text) in [("weather", "rain"), ("news", "cloth is sold"), ("weather", "sun")] {
            topics[topic].send(text.to_string());
        }
        drop(topics); // the end of all of them
        for subscriber in subscribers {
            println!("{}", subscriber.await?);
        }

        let (setter, mut watcher) = watch(0);
        let watching = spawn(async move {
            let mut latest = 0;
            while watcher.changed().await.is_ok() {
                latest = *watcher.latest();
            }
            latest
        });
        for temperature in [18, 19, 21] {
            setter.set(temperature);
        }
        drop(setter);
        println!("the latest temperature is {}", watching.await?);
        Ok(())
    })
}

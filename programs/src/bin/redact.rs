//! Takes the passwords out of a file of JSON lines: the values of one member are replaced, and all
//! else stays as it is, byte by byte.
//!
//! # Prints
//! ```text
//! {"user": "ann", "password": "*", "tries": [1, 2]}
//! {"password":"*"}
//!   {"user": "bob \"password\": 1"}
//! 2 replaced
//! ```

use selvedge::pipeline::{count, foreach, group_by, id, json, substitute};
use selvedge::{flow, fs};
use std::process::ExitCode;

const LINES: &str = r#"{"user": "ann", "password": "s3\"}cret", "tries": [1, 2]}
{"password":{"old": "a", "new": "b"}}
  {"user": "bob \"password\": 1"}
"#;

fn main() -> ExitCode {
    selvedge::run_main(async {
        let home = std::env::temp_dir().join(format!("redact-{}", std::process::id()));
        let public = home.with_extension("public");
        fs::write(&home, LINES).await?;
        let password = || json::member("password");
        let hide = foreach(password(), substitute(b"\"*\""), id());
        (flow::file(&home) >> hide >> flow::create(&public)).run().await?;
        let replaced = (flow::file(&home) >> group_by(password()) >> count()).run().await?;
        print!("{}", String::from_utf8_lossy(&fs::read(&public).await?));
        println!("{replaced} replaced");
        fs::remove_file(home).await?;
        fs::remove_file(public).await?;
        Ok(())
    })
}

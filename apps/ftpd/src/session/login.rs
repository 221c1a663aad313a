//! USER, PASS, ACCT and REIN.

use super::{Login, Parameters, Session};
use crate::accounts::Account;
use crate::command::Verb;
use crate::reply::Reply;
use crate::server::report;
use crate::tree::Tree;
use selvedge::{blocking, sleep};
use std::sync::Arc;

impl Session {
    pub(super) async fn log_in(&mut self, verb: Verb, argument: Vec<u8>) -> Reply {
        if self.server.options.requires_tls && !self.control.is_secure() {
            return Reply::new(530, "Send AUTH TLS first.");
        }
        match verb {
            Verb::Rein if self.control.is_secure() => {
                Reply::new(502, "Over TLS, connect again in place of REIN.")
            }
            Verb::User => self.user(argument),
            Verb::Pass => self.pass(argument).await,
            Verb::Rein => {
                self.log_out();
                Reply::new(220, "Selvedge FTP server ready.")
            }
            _ => Reply::new(202, "There are no accounts besides the users."),
        }
    }

    /// As after a new connection, but wrong passwords stay counted.
    fn log_out(&mut self) {
        self.login = Login::None;
        self.parameters = Parameters::default();
    }

    /// A new user may be named at any time: the login begins anew.
    fn user(&mut self, name: Vec<u8>) -> Reply {
        self.log_out();
        let text = match self.server.accounts().anonymous(&name) {
            Some(_) => "Any password will do.",
            None => "Now the password.",
        };
        self.login = Login::Named(name);
        Reply::new(331, text)
    }

    async fn pass(&mut self, password: Vec<u8>) -> Reply {
        let Login::Named(name) = &mut self.login else {
            return Reply::new(503, "Name the user first.");
        };
        let name = std::mem::take(name);
        self.login = Login::None;
        let accounts = self.server.accounts();
        let account = match accounts.anonymous(&name) {
            Some(account) => Some(account),
            None => {
                let _permit = self.server.verifying.acquire().await;
                // A panic there is a wrong password.
                blocking(move || accounts.verify(&name, &password)).await.unwrap_or(None)
            }
        };
        match account {
            Some(account) => self.enter(account).await,
            None => self.wrong_password().await,
        }
    }

    async fn enter(&mut self, account: Arc<Account>) -> Reply {
        let opened = {
            let account = Arc::clone(&account);
            blocking(move || Tree::open(&account.root)).await
        };
        match opened.map_err(std::io::Error::from).flatten() {
            Ok(tree) => {
                self.failures = 0;
                self.login = Login::Done(account, Arc::new(tree));
                Reply::new(230, "You are logged in.")
            }
            Err(error) => {
                report(format_args!("{}: {error}", account.name));
                Reply::new(530, "The directory of this user cannot be opened.")
            }
        }
    }

    /// The more passwords were wrong, the longer the answer takes.
    async fn wrong_password(&mut self) -> Reply {
        self.failures += 1;
        let options = &self.server.options;
        sleep(options.login_delay * self.failures).await;
        if self.failures < options.login_tries {
            return Reply::new(530, "The name or the password is wrong.");
        }
        report(format_args!("{}: {} wrong passwords", self.client, self.failures));
        self.is_over = true;
        Reply::new(421, "Too many passwords were wrong.")
    }
}

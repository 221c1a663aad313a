//! [`Clients`]: how many clients there are, in all and from each address.

use selvedge::sync::Semaphore;
use selvedge_site::rate::OpenCounts;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The clients of a server.
#[derive(Debug)]
pub(crate) struct Clients {
    most: u32,
    /// A permit for each client that may still come.
    room: Semaphore,
    by_address: Mutex<OpenCounts>,
}

/// Why a client is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdmissionError {
    /// There are as many clients as there may be.
    Full,
    /// There are as many from the client's address.
    TooManyOfAddress,
}

/// A client that is counted as long as this value lives.
#[derive(Debug)]
pub(crate) struct Admission {
    clients: Arc<Clients>,
    address: IpAddr,
}

impl Clients {
    /// At most `most` clients, and `most_of_address` from one address.
    pub(crate) fn new(most: u32, most_of_address: u32) -> Clients {
        let by_address = Mutex::new(OpenCounts::new(most_of_address, most as usize));
        Clients { most, room: Semaphore::new(most), by_address }
    }

    /// Counts a client.
    ///
    /// # Errors
    /// See [`AdmissionError`].
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Admission, AdmissionError> {
        let permit = self.room.try_acquire(1).ok_or(AdmissionError::Full)?;
        if !self.by_address.lock().unwrap_or_else(PoisonError::into_inner).open(address) {
            return Err(AdmissionError::TooManyOfAddress);
        }
        permit.forget();
        Ok(Admission { clients: Arc::clone(self), address })
    }

    /// Waits until there is no client.
    pub(crate) async fn all_gone(&self) {
        drop(self.room.acquire_many(self.most).await);
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let clients = &self.clients;
        clients.by_address.lock().unwrap_or_else(PoisonError::into_inner).close(self.address);
        clients.room.release(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn clients_are_counted_until_they_go() {
        let clients = Arc::new(Clients::new(3, 2));
        let admit = |last: u8| clients.admit(Ipv4Addr::new(192, 0, 2, last).into());
        let first = admit(1).unwrap();
        let _second = admit(1).unwrap();
        assert_eq!(admit(1).unwrap_err(), AdmissionError::TooManyOfAddress);
        let third = admit(2).unwrap();
        assert_eq!(admit(3).unwrap_err(), AdmissionError::Full);
        drop(first);
        let _again = admit(1).unwrap();
        drop(third);
        assert_eq!(admit(1).unwrap_err(), AdmissionError::TooManyOfAddress);
        assert!(admit(3).is_ok());
    }

    #[test]
    fn the_last_client_that_goes_is_waited_for() {
        let gone = selvedge::run_local(async {
            let clients = Arc::new(Clients::new(2, 2));
            let admission = clients.admit(Ipv4Addr::LOCALHOST.into()).unwrap();
            let waiting = selvedge::spawn({
                let clients = Arc::clone(&clients);
                async move { clients.all_gone().await }
            });
            selvedge::yield_now().await;
            assert!(!waiting.is_finished());
            drop(admission);
            waiting.await.is_ok()
        });
        assert!(gone.unwrap());
    }
}

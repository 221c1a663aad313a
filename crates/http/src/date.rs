//! Dates: [`Clock`], which prints the second in two forms once a second, and a reader of HTTP
//! dates.
//!
//! Each worker has one `Clock`, which `worker.rs` sets; heads (`response.rs`, `representation.rs`)
//! and log lines (`log.rs`) copy its text. The reader serves `If-Modified-Since` and the like
//! (`conditional.rs`). Apart from `Clock::now`, no function here asks for the time.

use selvedge_core::Time;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Length of an IMF-fixdate such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub const HTTP_LEN: usize = 29;

/// Length of a zoned log date such as `10/Oct/2000:13:55:36 +0000`.
pub const LOG_LEN: usize = 26;

/// Length of a log date with the text around it in a line of the access log.
const LOG_FIELD_LEN: usize = LOG_AT + LOG_LEN + "] \"".len();

/// Where the date begins in that text.
const LOG_AT: usize = " - - [".len();

const DAYS: [&[u8; 3]; 7] = [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"];
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// 9999-12-31T23:59:59Z, the last second that the formats can print. Later times are printed as
/// this one.
const LAST: u64 = 253_402_300_799;

/// The current second with its two printed forms, recomputed only when the second changes.
///
/// Every worker owns one and sets it once per turn of its event loop, so that a request pays for
/// neither the system call nor the formatting.
///
/// # Paper
/// \[Mighty\] "Tuning" (own date formatting, which had eaten 30-40 % of the time) and "Logging"
/// (the zoned time string recomputed once a second).
///
/// # Examples
/// ```
/// use selvedge::http::date::Clock;
/// let clock = Clock::at(784_111_777);
/// assert_eq!(clock.http(), b"Sun, 06 Nov 1994 08:49:37 GMT");
/// assert_eq!(clock.log(), b"06/Nov/1994:08:49:37 +0000");
/// ```
#[derive(Clone, Debug)]
pub struct Clock {
    second: u64,
    http: [u8; HTTP_LEN],
    log_field: [u8; LOG_FIELD_LEN],
}

impl Clock {
    /// A clock that shows `second` (Unix time, UTC).
    pub fn at(second: u64) -> Clock {
        let mut log_field = *b" - - [00/Mon/0000:00:00:00 +0000] \"";
        log_field[LOG_AT..][..LOG_LEN].copy_from_slice(&log(second));
        Clock { second, http: http(second), log_field }
    }

    /// A clock that shows the system's time.
    pub fn now() -> Clock {
        Clock::at(seconds(Time::of_day()))
    }

    /// Sets the clock. Costs a comparison when the second has not changed.
    #[inline]
    pub fn set(&mut self, second: u64) {
        if second != self.second {
            *self = Clock::at(second);
        }
    }

    /// The second shown (Unix time).
    #[inline]
    pub fn second(&self) -> u64 {
        self.second
    }

    /// The second as IMF-fixdate, for the `Date` field.
    #[inline]
    pub fn http(&self) -> &[u8; HTTP_LEN] {
        &self.http
    }

    /// The second as the Apache log prints it, in UTC.
    #[inline]
    pub fn log(&self) -> &[u8; LOG_LEN] {
        self.log_field[LOG_AT..].first_chunk().expect("`LOG_FIELD_LEN` leaves room for it")
    }

    /// [`log`](Self::log) with the text around it in a line of the access log: from the space
    /// behind the client's address to the quote before the request line.
    #[inline]
    pub(crate) fn log_field(&self) -> &[u8; LOG_FIELD_LEN] {
        &self.log_field
    }
}

/// Unix seconds of `time`; 0 for a time before 1970.
pub fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

/// `second` (Unix time) as IMF-fixdate (RFC 9110 §5.6.7). Times after the year 9999 print as its
/// last second.
pub fn http(second: u64) -> [u8; HTTP_LEN] {
    let civil = Civil::from(second);
    let mut out = *b"Day, 00 Mon 0000 00:00:00 GMT";
    out[..3].copy_from_slice(DAYS[civil.weekday]);
    two(&mut out[5..], civil.day);
    out[8..11].copy_from_slice(MONTHS[civil.month]);
    two(&mut out[12..], civil.year / 100);
    two(&mut out[14..], civil.year % 100);
    two(&mut out[17..], civil.hour);
    two(&mut out[20..], civil.minute);
    two(&mut out[23..], civil.second);
    out
}

/// `second` (Unix time) in the zoned form of the Apache log, in UTC.
pub fn log(second: u64) -> [u8; LOG_LEN] {
    let civil = Civil::from(second);
    let mut out = *b"00/Mon/0000:00:00:00 +0000";
    two(&mut out, civil.day);
    out[3..6].copy_from_slice(MONTHS[civil.month]);
    two(&mut out[7..], civil.year / 100);
    two(&mut out[9..], civil.year % 100);
    two(&mut out[12..], civil.hour);
    two(&mut out[15..], civil.minute);
    two(&mut out[18..], civil.second);
    out
}

/// Reads an HTTP date in any of its three formats (RFC 9110 §5.6.7) as Unix seconds. `None` for
/// anything else, and for times before 1970.
pub fn parse(field: &[u8]) -> Option<u64> {
    let time = httpdate::parse_http_date(std::str::from_utf8(field).ok()?).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

fn two(out: &mut [u8], n: u64) {
    out[0] = b'0' + (n / 10) as u8;
    out[1] = b'0' + (n % 10) as u8;
}

/// A second taken apart in the proleptic Gregorian calendar; `weekday` and `month` count from 0
/// (Sunday, January).
struct Civil {
    weekday: usize,
    day: u64,
    month: usize,
    year: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

impl Civil {
    fn from(second: u64) -> Civil {
        let second = second.min(LAST);
        let days = second / 86_400;
        // Count days from 0000-03-01, so that the leap day is the last day of a year, of a century
        // and of an era of 400 years (146,097 days).
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Months from March alternate 31 and 30 days in a pattern of 153 days per five months.
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = (month_from_march as usize + 2) % 12;
        let year = year_of_era + era * 400 + u64::from(month < 2);
        Civil {
            weekday: ((days + 4) % 7) as usize,
            day,
            month,
            year,
            hour: second / 3600 % 24,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_all_three_formats() {
        for text in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(parse(text.as_bytes()), Some(784_111_777), "{text}");
        }
        for text in ["", "now", "784111777", "Sun, 06 Nov 1994 08:49:37", "\u{fc}"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn the_clock_changes_with_the_second() {
        let mut clock = Clock::at(0);
        assert_eq!(clock.http(), b"Thu, 01 Jan 1970 00:00:00 GMT");
        clock.set(951_782_400);
        assert_eq!(clock.http(), b"Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(clock.log(), b"29/Feb/2000:00:00:00 +0000");
        assert_eq!(clock.second(), 951_782_400);
        assert_eq!(&http(u64::MAX), b"Fri, 31 Dec 9999 23:59:59 GMT");
    }

    proptest! {
        #[test]
        fn formats_as_httpdate_does(second in 0..=LAST) {
            let theirs = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
            prop_assert_eq!(&http(second)[..], theirs.as_bytes());
            prop_assert_eq!(parse(&http(second)), Some(second));
            let log = String::from_utf8(log(second).to_vec()).unwrap();
            let expected =
                format!("{}/{}/{}:{} +0000", &theirs[5..7], &theirs[8..11], &theirs[12..16], &theirs[17..25]);
            prop_assert_eq!(log, expected);
        }
    }
}

//! The answers of the applications, by plain sequential code without threads.

/// The first `n` numbers of the form 2^a 3^b 5^c, in ascending order.
///
/// # Panics
/// If a candidate for one of them does not fit into 64 bits: that is after some 12,000.
///
/// # Examples
/// ```
/// use selvedge_lightweight::apps::answers::hamming;
///
/// assert_eq!(hamming(12), [1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 16]);
/// ```
pub fn hamming(n: usize) -> Vec<u64> {
    const FACTORS: [u64; 3] = [2, 3, 5];
    let mut numbers = vec![1_u64];
    // For each factor, the place of the first number of which the multiple is not there yet.
    let mut places = [0; 3];
    while numbers.len() < n {
        let multiple =
            |at: usize| numbers[places[at]].checked_mul(FACTORS[at]).expect("it fits into 64 bits");
        let multiples = [multiple(0), multiple(1), multiple(2)];
        let next = multiples[0].min(multiples[1]).min(multiples[2]);
        numbers.push(next);
        for (place, multiple) in places.iter_mut().zip(multiples) {
            *place += usize::from(multiple == next);
        }
    }
    numbers.truncate(n);
    numbers
}

/// The primes up to the first that is not below `last`.
///
/// # Examples
/// ```
/// use selvedge_lightweight::apps::answers::primes;
///
/// assert_eq!(primes(10), [2, 3, 5, 7, 11]);
/// ```
pub fn primes(last: u64) -> Vec<u64> {
    let mut primes: Vec<u64> = Vec::new();
    for number in 2.. {
        if primes.iter().take_while(|prime| **prime * **prime <= number).all(|prime| number % prime != 0) {
            primes.push(number);
            if number >= last {
                break;
            }
        }
    }
    primes
}

/// `n` numbers in an order that is the same each time.
pub fn shuffled(n: usize) -> Vec<u64> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let number = |_| {
        // The generator xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % 1_000_000
    };
    (0..n).map(number).collect()
}

/// Those numbers, sorted.
pub fn sorted(n: usize) -> Vec<u64> {
    let mut numbers = shuffled(n);
    numbers.sort_unstable();
    numbers
}

/// One number for a list of numbers, which depends on their order.
pub fn digest(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |sum, number| (sum * 31 + number % 1_000_003) % 1_000_003)
}

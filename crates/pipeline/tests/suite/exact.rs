//! Exact numbers beside integers of 128 bits.

use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use selvedge_pipeline::{Digits, Number};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The number `units`, divided by ten to the power of `places`, times ten to the power of `shift`,
/// in one of many texts.
fn text(units: i128, places: usize, shift: i32, zeros: usize) -> String {
    let sign = if units < 0 { "-" } else { ["", "+"][zeros % 2] };
    let digits = format!("{:0>width$}", units.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let (before, after) = ("0".repeat(zeros), "0".repeat(zeros));
    let fraction = if places + zeros == 0 { String::new() } else { format!(".{fraction}{after}") };
    let exponent = if shift == 0 { String::new() } else { format!("e{shift}") };
    format!("{sign}{before}{whole}{fraction}{exponent}")
}

fn hash(number: &Number) -> u64 {
    let mut hasher = DefaultHasher::new();
    number.hash(&mut hasher);
    hasher.finish()
}

proptest! {
    #[test]
    fn numbers_are_compared_and_added_as_integers_are(
        (a, b) in (-(1_i128 << 90)..1 << 90, -(1_i128 << 90)..1 << 90),
        (cut_a, cut_b) in (0_u32..28, 0_u32..28),
        (places_a, places_b) in (0_usize..9, 0_usize..9),
        (zeros_a, zeros_b) in (0_usize..3, 0_usize..3),
        shift in proptest::sample::select(vec![0, 0, 3, -3, 30, -30, 400, -400]),
    ) {
        // Numbers of all lengths.
        let (a, b) = (a / 10_i128.pow(cut_a), b / 10_i128.pow(cut_b));
        let of = |text: &str| Number::of(text).unwrap();
        let (one, two) = (of(&text(a, places_a, shift, zeros_a)), of(&text(b, places_b, shift, zeros_b)));
        let scaled = |units: i128, places: usize| units * 10_i128.pow(8 - places as u32);
        let (a, b) = (scaled(a, places_a), scaled(b, places_b));
        prop_assert_eq!(one.cmp(&two), a.cmp(&b));
        prop_assert_eq!(one == two, a == b);
        prop_assert!(one != two || hash(&one) == hash(&two));
        prop_assert_eq!(one.order_of(&text(b, 8, shift, zeros_a)), Some(b.cmp(&a)));
        let digits = (text(a, 8, shift, zeros_b), text(b, 8, shift, zeros_a));
        let of_text = |text| Digits::of(text).unwrap();
        prop_assert_eq!(of_text(&digits.0).compare(&of_text(&digits.1)), a.cmp(&b));
        let sum = one.checked_add(&two).unwrap();
        prop_assert_eq!(&sum, &of(&text(a + b, 8, shift, 0)));
        prop_assert_eq!(sum.is_negative(), a + b < 0);
        // Each number has one text, by which it is read again.
        for number in [&one, &two, &sum] {
            prop_assert_eq!(&of(&number.to_string()), number);
            let mut bytes = Vec::new();
            number.write(&mut bytes);
            prop_assert_eq!(bytes, number.to_string().into_bytes());
        }
        if shift == 0 {
            prop_assert_eq!(sum.is_whole(), (a + b) % 10_i128.pow(8) == 0);
            prop_assert_eq!(one.nearest(), text(a, 8, 0, 0).parse::<f64>().unwrap());
        }
        prop_assert!(a > b || one.nearest() <= two.nearest());
    }
}

#[test]
fn numbers_at_the_limits_have_one_representation() {
    for number in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX] {
        let (made, read) = (Number::from(number), Number::of(&number.to_string()).unwrap());
        assert_eq!(made, read);
        assert_eq!(hash(&made), hash(&read));
        assert_eq!(made.to_string(), number.to_string());
    }
    let (least, one) = (Number::from(i64::MIN + 1), Number::from(-1_i64));
    assert_eq!(least.checked_add(&one), Some(Number::from(i64::MIN)));
    assert_eq!(Number::from(u64::MAX).to_string(), u64::MAX.to_string());
    assert_eq!(Number::of("-0"), Some(Number::from(0_i64)));
    assert!(!Number::of("-0.0").unwrap().is_negative());
}

#[test]
fn what_is_too_far_apart_has_no_sum() {
    let of = |text: &str| Number::of(text).unwrap();
    let far = of("1e1000000");
    assert_eq!(far.checked_add(&of("1")), None);
    assert_eq!(far.checked_add(&of("0")).as_ref(), Some(&far));
    assert_eq!(far.checked_add(&far), Some(of("2e1000000")));
    assert_eq!(far.checked_add(&of("-1e1000000")), Some(of("0")));
    assert_eq!(far.checked_add(&of("10")).unwrap().to_string().len(), 1_000_001);
    assert_eq!(Number::of("1e99999999999999999999"), None);
    assert!(of("1e999999999999999999") > of("9e999999999999999998"));
    for text in ["", "-", ".", "e5", "1e", "1e+", "1.2.3", "0x1", "1_000", " 1", "inf", "\u{661}"] {
        assert_eq!(Number::of(text), None, "{text:?}");
    }
}

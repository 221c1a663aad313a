//! The axes of the plots: round ticks, a logarithmic scale, and short numbers. `bars.rs` and
//! `lines.rs` call it.
//!
//! A `Scale` gives positions between 0 and 1; the plots turn them into units. `short` never rounds
//! a number to another one: a number that would lose digits is written out.

/// From values to positions between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// From zero.
    Linear { max: f64 },
    /// From `min`, which is above zero. A value below it stands at the beginning.
    Log { min: f64, max: f64 },
}

impl Scale {
    /// From zero to a round number that no value exceeds. The axis of values that are all zero
    /// ends at one, because an axis without a length has no positions.
    pub(super) fn linear(max: f64) -> Scale {
        let max = if max == 0.0 { 1.0 } else { max };
        let step = step(max);
        Scale::Linear { max: (max / step).ceil() * step }
    }

    /// From the power of ten below all values to the one above them.
    pub(super) fn decades(min: f64, max: f64) -> Scale {
        let min = 10f64.powf(min.log10().floor());
        Scale::Log { min, max: 10f64.powf(max.log10().ceil()).max(10.0 * min) }
    }

    pub(super) fn position(self, value: f64) -> f64 {
        match self {
            Scale::Linear { max } => value / max,
            Scale::Log { min, max } => ((value / min).ln() / (max / min).ln()).clamp(0.0, 1.0),
        }
    }

    /// The values that are written on the axis: at most seven.
    pub(super) fn ticks(self) -> Vec<f64> {
        match self {
            Scale::Linear { max } => {
                let step = step(max);
                (0..=(max / step).round() as u32).map(|tick| f64::from(tick) * step).collect()
            }
            Scale::Log { min, max } => {
                let decades = (max / min).log10().round() as i32;
                let stride = (decades / 6 + 1) as usize;
                (0..=decades).step_by(stride).map(|decade| min * 10f64.powi(decade)).collect()
            }
        }
    }
}

/// The distance of ticks: 1, 2 or 5 times a power of ten, and at most six of them up to `max`.
fn step(max: f64) -> f64 {
    let decade = 10f64.powf((max / 5.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * decade)
        .into_iter()
        .find(|step| max / step <= 5.0)
        .unwrap_or(10.0 * decade)
}

/// `150k`, `1.5M`: a number in as few letters as an axis has room for. A number that would lose
/// digits is written out.
pub(super) fn short(value: f64) -> String {
    for (unit, suffix) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        let tenths = value / unit * 10.0;
        if value >= unit.max(1e4) && tenths.fract() == 0.0 {
            return format!("{}{suffix}", tenths / 10.0);
        }
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        for (max, ticks) in [
            (151.0, vec![0.0, 50.0, 100.0, 150.0, 200.0]),
            (0.92, vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            (5.0, vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
            (0.0, vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        ] {
            let found = Scale::linear(max).ticks();
            let same =
                found.len() == ticks.len() && found.iter().zip(&ticks).all(|(a, b)| (a - b).abs() < 1e-9);
            assert!(same, "{max}: {found:?}");
        }
    }

    #[test]
    fn decades_lie_at_equal_distances() {
        let scale = Scale::decades(16.0, 2630.0);
        assert_eq!(scale.ticks(), [10.0, 100.0, 1000.0, 10000.0]);
        assert!((scale.position(100.0) - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(scale.position(0.0), 0.0);
        assert!(Scale::decades(1.0, 1e9).ticks().len() <= 7);
    }

    #[test]
    fn numbers_on_axes_are_short() {
        let texts = [0.0, 0.2, 4096.0, 16384.0, 100_000.0, 1.5e6, 1e9].map(short);
        assert_eq!(texts, ["0", "0.2", "4096", "16384", "100k", "1.5M", "1G"]);
    }
}

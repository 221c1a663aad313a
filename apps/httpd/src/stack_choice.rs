//! The option `--stack`: [`StackChoice`] is its value. `options.rs` reads it, and `stacked.rs` does
//! what it says.

use selvedge_stack::Congestion;
use std::net::IpAddr;
use std::str::FromStr;

/// The value of `--stack`: the device, the addresses of the stack, its routers, and the congestion
/// control.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StackChoice {
    pub(crate) device: StackDevice,
    pub(crate) addresses: Vec<(IpAddr, u8)>,
    pub(crate) gateways: Vec<IpAddr>,
    pub(crate) congestion: Congestion,
}

/// Where the frames of a stack go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StackDevice {
    Tap(String),
    Packet(String),
}

/// What `--stack` is to look like.
const FORM: &str = "not DEVICE,ADDRESS/PREFIX such as tap0,10.0.0.2/24";

/// What `congestion=` is to name.
const CONTROLS: &str = "not one of congestion=bbr, congestion=cubic and congestion=reno";

impl FromStr for StackChoice {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<StackChoice, &'static str> {
        let mut parts = text.split(',');
        let device = match parts.next() {
            None | Some("") => return Err(FORM),
            Some(name) => match name.strip_prefix("packet:") {
                Some(name) => StackDevice::Packet(name.to_owned()),
                None => StackDevice::Tap(name.to_owned()),
            },
        };
        let (mut addresses, mut gateways, mut congestion) = (Vec::new(), Vec::new(), Congestion::default());
        for part in parts {
            if let Some(gateway) = part.strip_prefix("via=") {
                gateways.push(gateway.parse().map_err(|_| FORM)?);
            } else if let Some(name) = part.strip_prefix("congestion=") {
                congestion = match name {
                    "bbr" => Congestion::Bbr,
                    "cubic" => Congestion::Cubic,
                    "reno" => Congestion::Reno,
                    _ => return Err(CONTROLS),
                };
            } else {
                let (address, prefix) = part.split_once('/').ok_or(FORM)?;
                addresses.push((address.parse().map_err(|_| FORM)?, prefix.parse().map_err(|_| FORM)?));
            }
        }
        match addresses.is_empty() {
            true => Err(FORM),
            false => Ok(StackChoice { device, addresses, gateways, congestion }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> StackChoice {
        text.parse().unwrap()
    }

    #[test]
    fn a_device_and_addresses() {
        let both = parsed("tap0,10.0.0.2/24,fd00::2/64,via=10.0.0.1");
        assert_eq!(both.device, StackDevice::Tap("tap0".into()));
        assert_eq!(both.addresses, [([10, 0, 0, 2].into(), 24), ("fd00::2".parse().unwrap(), 64)]);
        assert_eq!(both.gateways, [IpAddr::from([10, 0, 0, 1])]);
        assert_eq!(both.congestion, Congestion::Cubic);
        assert_eq!(parsed("tap0,congestion=bbr,10.0.0.2/24").congestion, Congestion::Bbr);
        assert_eq!("tap0,10.0.0.2/24,congestion=fast".parse::<StackChoice>(), Err(CONTROLS));
        assert_eq!(parsed("packet:eth0,10.0.0.2/24").device, StackDevice::Packet("eth0".into()));
        for text in ["", "tap0", ",10.0.0.2/24", "tap0,10.0.0.2", "tap0,10.0.0.2/x", "tap0,1/24,via=x"] {
            assert_eq!(text.parse::<StackChoice>(), Err(FORM), "{text}");
        }
    }
}

//! The option `--stack`: [`StackChoice`] is its value. `options.rs` reads it, and `stacked.rs` does
//! what it says.

use std::net::IpAddr;
use std::str::FromStr;

/// The value of `--stack`: the device, the addresses of the stack, and its routers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StackChoice {
    pub(crate) device: StackDevice,
    pub(crate) addresses: Vec<(IpAddr, u8)>,
    pub(crate) gateways: Vec<IpAddr>,
}

/// Where the frames of a stack go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StackDevice {
    Tap(String),
    Packet(String),
}

/// What `--stack` is to look like.
const FORM: &str = "not DEVICE,ADDRESS/PREFIX such as tap0,10.0.0.2/24";

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
        let (mut addresses, mut gateways) = (Vec::new(), Vec::new());
        for part in parts {
            if let Some(gateway) = part.strip_prefix("via=") {
                gateways.push(gateway.parse().map_err(|_| FORM)?);
            } else {
                let (address, prefix) = part.split_once('/').ok_or(FORM)?;
                addresses.push((address.parse().map_err(|_| FORM)?, prefix.parse().map_err(|_| FORM)?));
            }
        }
        if addresses.is_empty() { Err(FORM) } else { Ok(StackChoice { device, addresses, gateways }) }
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
        assert_eq!(parsed("packet:eth0,10.0.0.2/24").device, StackDevice::Packet("eth0".into()));
        for text in ["", "tap0", ",10.0.0.2/24", "tap0,10.0.0.2", "tap0,10.0.0.2/x", "tap0,1/24,via=x"] {
            assert_eq!(text.parse::<StackChoice>(), Err(FORM), "{text}");
        }
    }
}

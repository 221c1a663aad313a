//! The rules for other programs that answer for a route, from their settings.

use super::{Reader, SECONDS_MAX};
use crate::behind::{BALANCINGS, Balancing, GatewayTerms, HealthRule, ProgramRule};
use crate::error::ConfigError;
use crate::settings;
use std::time::Duration;
use toml::Spanned;

impl Reader<'_> {
    /// A time that may not be 0.
    fn seconds(&self, value: &Spanned<f64>) -> Result<Duration, ConfigError> {
        match Duration::try_from_secs_f64(*value.get_ref()) {
            Ok(time) if !time.is_zero() && *value.get_ref() <= SECONDS_MAX => Ok(time),
            _ => Err(self.mistake(value, "not a number of seconds above 0 and up to 86400")),
        }
    }

    pub(super) fn balancing(&self, route: &settings::RouteSettings) -> Result<Balancing, ConfigError> {
        let Some(name) = &route.balance else { return Ok(Balancing::default()) };
        match BALANCINGS.iter().find(|(known, _)| known == name.get_ref()) {
            Some((_, balancing)) => Ok(*balancing),
            None => {
                let known = BALANCINGS.map(|(known, _)| format!("\"{known}\"")).join(", ");
                Err(self.mistake(name, format!("{:?} is not one of {known}", name.get_ref())))
            }
        }
    }

    pub(super) fn health(&self, route: &settings::RouteSettings) -> Result<HealthRule, ConfigError> {
        let Some(health) = &route.health else { return Ok(HealthRule::default()) };
        let health = health.get_ref();
        if let Some(path) = health.path.as_ref().filter(|path| !path.get_ref().starts_with('/')) {
            return Err(self.mistake(path, "a path begins with /"));
        }
        Ok(HealthRule {
            path: health.path.as_ref().map(|path| path.get_ref().clone()),
            period: self.seconds(&health.seconds)?,
            failures: health.failures,
            pause: self.seconds(&health.pause)?,
        })
    }

    pub(super) fn times(&self, route: &settings::RouteSettings) -> Result<GatewayTerms, ConfigError> {
        let outlives_client = route.outlive_client;
        let Some(times) = &route.times else {
            return Ok(GatewayTerms { outlives_client, ..GatewayTerms::default() });
        };
        let times = times.get_ref();
        Ok(GatewayTerms {
            outlives_client,
            connect: self.seconds(&times.connect)?,
            send: self.seconds(&times.send)?,
            answer: self.seconds(&times.answer)?,
            read: self.seconds(&times.read)?,
        })
    }

    pub(super) fn programs(&self, route: &settings::RouteSettings) -> Result<ProgramRule, ConfigError> {
        let outlives_client = route.outlive_client;
        let Some(programs) = &route.programs else {
            return Ok(ProgramRule { outlives_client, ..ProgramRule::default() });
        };
        let programs = programs.get_ref();
        if *programs.at_once.get_ref() == 0 {
            return Err(self.mistake(&programs.at_once, "no program could ever run"));
        }
        Ok(ProgramRule {
            outlives_client,
            at_once: *programs.at_once.get_ref(),
            queue: programs.queue as usize,
            patience: self.seconds(&programs.patience)?,
            time: self.seconds(&programs.time)?,
        })
    }
}

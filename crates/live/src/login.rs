//! The address of the remote login that runs this program.

use std::fs;
use std::net::IpAddr;

/// Limit of ancestor processes to search.
const MOST: usize = 32;

/// The local address of the caller's SSH login.
///
/// `sudo` removes SSH_CONNECTION from the environment, so the environments of ancestor processes are read
/// too, if allowed.
pub(crate) fn address() -> Option<IpAddr> {
    if let Ok(value) = std::env::var("SSH_CONNECTION") {
        return of_connection(&value);
    }
    let mut process = parent("self")?;
    for _ in 0..MOST {
        if process == "0" {
            return None;
        }
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        if let Some(address) = of_environment(&environment) {
            return Some(address);
        }
        process = parent(&process)?;
    }
    None
}

/// The parent's process number.
fn parent(process: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix("PPid:")?.trim().to_owned()))
}

fn of_environment(environment: &[u8]) -> Option<IpAddr> {
    let variables = environment.split(|byte| *byte == 0);
    let value = variables.into_iter().find_map(|line| line.strip_prefix(b"SSH_CONNECTION="))?;
    of_connection(core::str::from_utf8(value).ok()?)
}

/// Fields: client, its port, server, its port.
fn of_connection(value: &str) -> Option<IpAddr> {
    value.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_word_is_the_address_of_this_machine() {
        assert_eq!(of_connection("192.0.2.7 50000 10.5.0.1 22"), "10.5.0.1".parse().ok());
        assert_eq!(
            of_environment(b"A=1\0SSH_CONNECTION=2001:db8::7 1 2001:db8::1 22\0B="),
            "2001:db8::1".parse().ok()
        );
        for nothing in ["", "a b", "1 2 x 4"] {
            assert_eq!(of_connection(nothing), None);
        }
        assert_eq!(of_environment(b"A=SSH_CONNECTION\0"), None);
    }

    #[test]
    fn parents_are_followed_to_the_first_process() {
        let mut process = "self".to_owned();
        for _ in 0..MOST {
            process = parent(&process).expect("a parent");
            if process == "0" || process == "1" {
                return;
            }
        }
        panic!("no end");
    }
}

//! A station in a separate process, which a test kills or stops.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};

use lasthop_live::clock::Clock;
use lasthop_live::plane::Plane;
use lasthop_live::station::{Port, Station};
use lasthop_observe::Nothing;
use lasthop_proto::event::Interest;
use lasthop_proto::machine::{Side, StageId};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::rerun::only;
use super::{link, none, path_of, pause, snoop, split, until};

const STAGE: &str = "LASTHOP_TEST_STAGE";

/// The name of the test that calls [`run`] in each file that starts such stations.
const TEST: &str = "a_station_in_a_process_of_its_own";

/// The station, if this process was started to be one.
pub fn run() {
    let Ok(stage) = std::env::var(STAGE) else { return };
    let index = |name: &str| nix::net::if_::if_nametoindex(name).unwrap();
    let ports = vec![
        Port::open("bl", index("bl"), StageId(0), Side::Left).unwrap(),
        Port::open("br", index("br"), StageId(2), Side::Right).unwrap(),
    ];
    let stage = match &*stage {
        "none" => none(),
        "snoop" => snoop(),
        "split" => split(),
        _ => link(),
    };
    let path = path_of(vec![stage], Interest::NOTHING);
    let mut station = Station::new(path, ports, Clock::start()).unwrap();
    station.set_plane(Plane::start(["bl", "br"].map(index)).unwrap()).unwrap();
    eprintln!("ready");
    station.run(&mut Nothing, &mut |_, _, _| true).unwrap();
}

pub struct Far(Child);

impl Far {
    pub fn start(stage: &str) -> Far {
        let mut child = Command::new("nsenter")
            .arg("--net=/run/netns/bs")
            .arg(std::env::current_exe().unwrap())
            .args(only(TEST))
            .arg("--nocapture")
            .env(STAGE, stage)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stderr.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
        pause(50);
        Far(child)
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id() as i32), signal).unwrap();
    }

    /// Stops it, and waits until none of its threads runs.
    pub fn stop(&self) {
        self.signal(Signal::SIGSTOP);
        until("the station stops", || {
            let threads = std::fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap();
            threads.flatten().all(|thread| {
                let stat = std::fs::read_to_string(thread.path().join("stat"));
                // Behind the name, which may contain anything.
                stat.is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|s| s.starts_with('T')))
            })
        });
    }

    /// Kills it, and waits until the kernel has taken away all that it had.
    pub fn kill(self) {
        drop(self);
    }
}

/// It ends with a test that fails, too.
impl Drop for Far {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).expect("its process is there");
    }
}

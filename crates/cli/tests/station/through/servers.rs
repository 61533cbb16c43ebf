//! The servers on host `a`: nginx, rsync, SSH and DNS.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use sha2::{Digest as _, Sha256};

use super::super::world::enter;
use super::{FILES, on};

/// The server processes, which end when this is dropped.
pub struct Servers(Vec<Child>);

impl Drop for Servers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Incompressible bytes that differ for all seeds.
pub fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut noise = Vec::with_capacity(bytes + 32);
    let mut chunk = Sha256::digest(seed.to_le_bytes());
    while noise.len() < bytes {
        noise.extend_from_slice(&chunk);
        chunk = Sha256::digest(chunk);
    }
    noise.truncate(bytes);
    noise
}

const NGINX: &str =
    "user root root; daemon off; master_process off; pid /run/nginx.pid; error_log stderr;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path /run/t1; proxy_temp_path /run/t2; fastcgi_temp_path /run/t3;
    uwsgi_temp_path /run/t4; scgi_temp_path /run/t5;
    server {
        listen 80 fastopen=64; listen 443 ssl; root /run/files/out;
        ssl_certificate /run/cert.pem; ssl_certificate_key /run/key.pem;
    }
}
";

const RSYNC: &str = "use chroot = no\nuid = root\ngid = root\nlog file = /run/rsyncd.log\n\
                     pid file = /run/rsyncd.pid\n[out]\npath = /run/files/out\n";

const SSH: &str = "Port 22\nHostKey /run/ssh/host\nAuthorizedKeysFile /run/ssh/user.pub\nStrictModes no\n\
                   UsePAM no\nPidFile none\nPasswordAuthentication no\nPermitRootLogin yes\nSubsystem sftp internal-sftp\n";

fn shell(line: &str) {
    let done = Command::new("sh").args(["-ec", line]).output().expect("sh");
    assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
}

impl Servers {
    /// Creates files and starts their servers; the largest file has `bytes`.
    pub fn start(bytes: usize) -> Servers {
        for dir in ["/run/files/out/small", "/run/files/got", "/run/ssh", "/run/sshd"] {
            fs::create_dir_all(dir).expect("a directory");
        }
        fs::set_permissions("/run/ssh", fs::Permissions::from_mode(0o700)).expect("its mode");
        fs::write("/run/files/out/large", noise(bytes, 0)).expect("a file");
        for i in 0..FILES {
            let len = 100 + i * 97 % 20_000;
            fs::write(format!("/run/files/out/small/{i}"), noise(len, 1 + i as u64))
                .expect("a file");
        }
        for (name, text) in [("nginx", NGINX), ("rsyncd", RSYNC), ("ssh/sshd", SSH)] {
            fs::write(format!("/run/{name}.conf"), text).expect("a file");
        }
        shell(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=a \
             -addext subjectAltName=IP:10.9.0.1 -keyout /run/key.pem -out /run/cert.pem
             ssh-keygen -q -t ed25519 -N '' -f /run/ssh/host; ssh-keygen -q -t ed25519 -N '' -f /run/ssh/user",
        );
        name_server();
        let commands: [(&str, &str, &[&str]); 5] = [
            ("a", "80", &["nginx", "-e", "stderr", "-c", "/run/nginx.conf"]),
            ("a", "873", &["rsync", "--daemon", "--no-detach", "--config=/run/rsyncd.conf"]),
            ("a", "22", &["/usr/sbin/sshd", "-D", "-f", "/run/ssh/sshd.conf"]),
            ("a", "5201", &["iperf3", "-s"]),
            ("b", "5201", &["iperf3", "-s"]),
        ];
        let mut children = Vec::new();
        for (host, _, words) in &commands {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", host]).args(*words);
            let log = fs::File::create(format!("/run/{}.log", children.len())).expect("a file");
            let child = command.stdout(Stdio::null()).stderr(Stdio::from(log)).spawn();
            children.push(child.expect("it starts"));
        }
        for (host, port, words) in commands {
            let listens = || {
                let output = on(host, &["ss", "-Hltn", "sport", "=", &format!(":{port}")]);
                output.is_ok_and(|output| !output.is_empty())
            };
            assert!((0..500).any(|_| listens()), "{words:?} listens");
        }
        Servers(children)
    }
}

/// The address of `file.test`; for a long name only over TCP.
fn answer(question: &[u8], udp: bool) -> Option<Vec<u8>> {
    let mut end = 12;
    while *question.get(end)? != 0 {
        end += 1 + usize::from(question[end]);
    }
    let first = usize::from(question[12]);
    let truncated = udp && first > 20;
    let is_a = question.get(end + 1..end + 3)? == [0, 1];
    let mut answer = question[..2].to_vec();
    answer.extend([0x81 | if truncated { 2 } else { 0 }, 0x80, 0, 1, 0]);
    answer.extend([u8::from(is_a && !truncated), 0, 0, 0, 0]);
    answer.extend(question.get(12..end + 5)?);
    if is_a && !truncated {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 9, 0, 77]);
    }
    Some(answer)
}

/// Answers DNS queries over UDP and TCP, and makes this process's programs use this server.
fn name_server() {
    fs::write("/run/resolv.conf", "nameserver 10.9.0.1\noptions timeout:5\n").expect("a file");
    shell(
        "f=$(readlink -m /etc/resolv.conf); mkdir -p $(dirname $f); [ -e $f ] || touch $f
         mount --bind /run/resolv.conf $f",
    );
    assert!(Path::new("/etc/resolv.conf").exists());
    thread::spawn(|| {
        enter("a");
        let socket = UdpSocket::bind("0.0.0.0:53").expect("a socket");
        let mut question = [0; 1500];
        while let Ok((len, from)) = socket.recv_from(&mut question) {
            if let Some(answer) = answer(&question[..len], true) {
                let _ = socket.send_to(&answer, from);
            }
        }
    });
    thread::spawn(|| {
        enter("a");
        let listener = TcpListener::bind("0.0.0.0:53").expect("a socket");
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut len = [0; 2];
            while stream.read_exact(&mut len).is_ok() {
                let mut question = vec![0; usize::from(u16::from_be_bytes(len))];
                if stream.read_exact(&mut question).is_err() {
                    break;
                }
                let Some(answer) = answer(&question, false) else { break };
                let len = (answer.len() as u16).to_be_bytes();
                if stream.write_all(&[&len[..], &answer].concat()).is_err() {
                    break;
                }
            }
        }
    });
}

//! Capture files, plain or compressed by gzip or zstd.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use lasthop_analyze::{Config, Reader};
use lasthop_study::capture::Capture;

use crate::failure::Failure;
use crate::scenario::or_run;

#[cfg(feature = "zstd")]
/// Limit of the window that a zstd file may require: 2^27 bytes, the default of `zstd`.
const ZSTD_WINDOW_LOG: u32 = 27;

/// Bytes of a capture in memory at a time, if no record is longer.
const PIECE: usize = 1 << 20;

/// Analyses a capture of any size in pieces. `help` describes a valid file.
pub fn read(path: &Path, help: &str, verify: bool) -> Result<Capture, Failure> {
    let mut reader = Reader::new(Config { verify, ..Config::default() });
    read_into(&mut reader, path, help)?;
    Ok(Capture { file: name(path), analysis: reader.finish(), left_out: 0 })
}

/// Analyses successive files of one capture.
pub fn read_pieces(paths: &[PathBuf], help: &str, verify: bool) -> Result<Capture, Failure> {
    let mut reader = Reader::new(Config { verify, ..Config::default() });
    for (i, path) in paths.iter().enumerate() {
        if i > 0 {
            reader.next_file();
        }
        read_into(&mut reader, path, help)?;
    }
    let file = format!("{} (joined by time: pieces of one capture)", names(paths));
    Ok(Capture { file, analysis: reader.finish(), left_out: 0 })
}

fn read_into(reader: &mut Reader, path: &Path, help: &str) -> Result<(), Failure> {
    let mut file = open(path, help)?;
    // `from..to` contains the unused bytes.
    let mut buffer = vec![0; PIECE];
    let (mut from, mut to) = (0, 0);
    let mut last = false;
    while !last {
        buffer.copy_within(from..to, 0);
        (from, to) = (0, to - from);
        if to == buffer.len() {
            // Longer records are rejected at their start.
            buffer.resize((2 * to).min(Reader::BUFFER), 0);
        }
        match file.read(&mut buffer[to..]) {
            Ok(0) => last = true,
            Ok(more) => to += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => last = broken_off(error, to > 0 || reader.is_capture(), path)?,
        }
        let used = reader.read(&buffer[from..to], last).map_err(|error| {
            Failure::input(format!("{}: {error}", name(path)), or_run(path, help))
        })?;
        let Some(used) = used else { break };
        from += used;
    }
    Ok(())
}

/// Names of captures in texts.
pub fn names(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| name(path)).collect();
    names.join(", ")
}

/// Whether a path means the standard input, by convention.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Name of a capture in texts.
fn name(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Opens a capture with decompression if needed.
fn open(path: &Path, help: &str) -> Result<Box<dyn Read>, Failure> {
    let fail = |error| Failure::file(path, error, help);
    let mut file: Box<dyn Read> = if is_stdin(path) {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).map_err(fail)?)
    };
    let mut first = Vec::new();
    (&mut file).take(4).read_to_end(&mut first).map_err(fail)?;
    let compressed = first.clone();
    let whole = io::Cursor::new(first).chain(file);
    Ok(match compressed[..] {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        #[cfg(feature = "zstd")]
        [0x28, 0xb5, 0x2f, 0xfd] => {
            let mut decoder = zstd::stream::read::Decoder::new(whole).map_err(fail)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(fail)?;
            Box::new(decoder)
        }
        #[cfg(not(feature = "zstd"))]
        [0x28, 0xb5, 0x2f, 0xfd] => {
            let message = format!("{}: to read a file compressed by zstd", name(path));
            return Err(crate::features::refused(&message, "zstd"));
        }
        _ => Box::new(whole),
    })
}

/// Whether a read error ends the capture early. A truncated file is accepted, and the analysis reports it.
fn broken_off(error: io::Error, begun: bool, path: &Path) -> Result<bool, Failure> {
    if error.kind() == io::ErrorKind::UnexpectedEof && begun {
        return Ok(true);
    }
    let message = format!("{}: it cannot be read: {error}", name(path));
    Err(Failure::input(message, "is the file damaged? check it with `gzip -t` or `zstd -t`"))
}

/// All bytes of a capture, decompressed if needed, at most `most`.
pub fn bytes(path: &Path, help: &str, most: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let result = open(path, help)?.take(most + 1).read_to_end(&mut bytes);
    if let Err(error) = result {
        broken_off(error, !bytes.is_empty(), path)?;
    }
    if bytes.len() as u64 > most {
        let message = format!("{}: it is larger than the limit of {most} bytes", path.display());
        let help = "to match captures, two are held in memory: raise `--max-size` if there is enough, or cut them: \
                    editcap -c 1000000 FILE PARTS";
        return Err(Failure::input(message, help));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn of(name: &str, content: &[u8], most: u64) -> Result<Vec<u8>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        bytes(&path, "", most).map_err(|failure| failure.to_string())
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn compressed_files_unpack_to_their_content() {
        let content: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
        let most = content.len() as u64;
        assert_eq!(of("plain", &content, most).unwrap(), content);
        assert_eq!(of("gz", &gzip(&content), most).unwrap(), content);
        let zst = zstd::bulk::compress(&content, 3).unwrap();
        assert_eq!(of("zst", &zst, most).unwrap(), content);
        // Two concatenated members.
        let both = [gzip(&content[..1000]), gzip(&content[1000..])].concat();
        assert_eq!(of("two", &both, most).unwrap(), content);
    }

    #[test]
    fn content_beyond_the_size_limit_is_refused() {
        let zeros = vec![0; 3_000_000];
        for (name, packed) in
            [("gz", gzip(&zeros)), ("zst", zstd::bulk::compress(&zeros, 3).unwrap())]
        {
            assert!(packed.len() < 20_000, "{name}");
            let error = of(name, &packed, 1_000_000).unwrap_err();
            assert!(error.ends_with("larger than the limit of 1000000 bytes"), "{error}");
        }
        assert!(of("plain", &zeros, 1_000_000).is_err());
    }

    #[test]
    fn truncated_gzip_is_partly_read_and_damaged_gzip_refused() {
        let content: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
        let packed = gzip(&content);
        let partial = of("cut", &packed[..packed.len() / 2], u64::MAX - 1).unwrap();
        assert!(partial.len() > 1000 && content.starts_with(&partial));
        let mut damaged = packed;
        let middle = damaged.len() / 2;
        damaged[middle..middle + 100].fill(0xff);
        assert!(of("damaged", &damaged, u64::MAX - 1).unwrap_err().contains("cannot be read"));
    }
}

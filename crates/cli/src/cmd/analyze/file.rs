//! Capture files, compressed by gzip or zstd or not at all.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use lasthop_analyze::{Config, analyze_capture};
use lasthop_study::capture::Capture;

use crate::failure::Failure;

/// What a file of zstd may ask the reader to remember: 2 to the 27 bytes, the most that `zstd` itself takes unasked.
const ZSTD_WINDOW_LOG: u32 = 27;

/// Reads a capture of at most `most` bytes; `help` says what would be one, `too_large` what one of a size is.
pub fn read(
    path: &Path,
    help: &str,
    verify: bool,
    most: u64,
    too_large: impl Fn(u64) -> Failure,
) -> Result<Capture, Failure> {
    let bytes = bytes(path, help, most, too_large)?;
    let analysis = analyze_capture(&bytes, Config { verify, ..Config::default() })
        .map_err(|error| Failure::input(format!("{}: {error}", path.display()), help))?;
    Ok(Capture { file: path.display().to_string(), analysis, left_out: 0 })
}

/// The bytes of a capture, unpacked if they are compressed: at most `most` of them, before and after.
pub fn bytes(
    path: &Path,
    help: &str,
    most: u64,
    too_large: impl Fn(u64) -> Failure,
) -> Result<Vec<u8>, Failure> {
    let fail = |error| Failure::file(path, error, help);
    let size = std::fs::metadata(path).map_err(fail)?.len();
    if size > most {
        return Err(too_large(size));
    }
    let mut file = File::open(path).map_err(fail)?;
    let mut first = Vec::with_capacity(size.try_into().unwrap_or(0));
    (&mut file).take(4).read_to_end(&mut first).map_err(fail)?;
    match first[..] {
        [0x1f, 0x8b, ..] => {
            let whole = io::Cursor::new(first).chain(file);
            unpacked(flate2::read::MultiGzDecoder::new(whole), path, most)
        }
        [0x28, 0xb5, 0x2f, 0xfd] => {
            let whole = io::Cursor::new(first).chain(file);
            let mut decoder = zstd::stream::read::Decoder::new(whole).map_err(fail)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(fail)?;
            unpacked(decoder, path, most)
        }
        _ => {
            // A pipe has no size beforehand.
            file.take((most + 1).saturating_sub(first.len() as u64))
                .read_to_end(&mut first)
                .map_err(fail)?;
            if first.len() as u64 > most { Err(too_large(first.len() as u64)) } else { Ok(first) }
        }
    }
}

/// Unpacks until the end or until there is too much. What breaks off is kept up to there, as of any capture.
fn unpacked(from: impl Read, path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let result = from.take(most + 1).read_to_end(&mut bytes);
    if bytes.len() as u64 > most {
        let what = format!("{}: it unpacks to more than {} bytes", path.display(), most);
        let help = "raise `--max-size` if that much memory is there, or unpack it and cut the capture: \
                    editcap -c 1000000 FILE PARTS";
        return Err(Failure::input(what, help));
    }
    match result {
        // The analysis says that the capture breaks off.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !bytes.is_empty() => {
            Ok(bytes)
        }
        Err(error) => {
            let what = format!("{}: it cannot be unpacked: {error}", path.display());
            Err(Failure::input(what, "is the file damaged? `gzip -t` and `zstd -t` tell"))
        }
        Ok(_) => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn of(name: &str, content: &[u8], most: u64) -> Result<Vec<u8>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        let too_large = |size| Failure::input(format!("{size} bytes"), "");
        bytes(&path, "", most, too_large).map_err(|failure| failure.to_string())
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn compressed_files_are_what_they_were() {
        let content: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
        let most = content.len() as u64;
        assert_eq!(of("plain", &content, most).unwrap(), content);
        assert_eq!(of("gz", &gzip(&content), most).unwrap(), content);
        let zst = zstd::bulk::compress(&content, 3).unwrap();
        assert_eq!(of("zst", &zst, most).unwrap(), content);
        // Two members one after the other, as `cat` makes them.
        let both = [gzip(&content[..1000]), gzip(&content[1000..])].concat();
        assert_eq!(of("two", &both, most).unwrap(), content);
    }

    #[test]
    fn what_unpacks_to_too_much_is_refused_at_the_limit() {
        let zeros = vec![0; 3_000_000];
        for (name, packed) in
            [("gz", gzip(&zeros)), ("zst", zstd::bulk::compress(&zeros, 3).unwrap())]
        {
            assert!(packed.len() < 20_000, "{name}");
            let error = of(name, &packed, 1_000_000).unwrap_err();
            assert!(error.ends_with("it unpacks to more than 1000000 bytes"), "{error}");
        }
        assert_eq!(of("plain", &zeros, 1_000_000).unwrap_err(), "3000000 bytes");
    }

    #[test]
    fn what_breaks_off_is_kept_up_to_there_and_what_is_damaged_is_refused() {
        let content: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
        let packed = gzip(&content);
        let kept = of("cut", &packed[..packed.len() / 2], u64::MAX - 1).unwrap();
        assert!(kept.len() > 1000 && content.starts_with(&kept));
        let mut damaged = packed;
        let middle = damaged.len() / 2;
        damaged[middle..middle + 100].fill(0xff);
        assert!(of("damaged", &damaged, u64::MAX - 1).unwrap_err().contains("cannot be unpacked"));
    }
}

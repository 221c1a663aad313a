//! Compression of whole files, on the blocking pool.

use selvedge_site::accept::Coding;

/// The codings that are compiled in.
pub(super) const CODINGS: &[Coding] = &[
    #[cfg(feature = "brotli")]
    Coding::Brotli,
    #[cfg(feature = "zstd")]
    Coding::Zstd,
    #[cfg(feature = "gzip")]
    Coding::Gzip,
];

/// `content` in `coding`; `None` if the coding is not compiled in.
#[cfg_attr(
    not(any(feature = "brotli", feature = "gzip", feature = "zstd")),
    expect(unused_variables, reason = "no coding is compiled in")
)]
pub(super) fn compress(content: &[u8], coding: Coding) -> Option<Box<[u8]>> {
    match coding {
        #[cfg(feature = "brotli")]
        Coding::Brotli => {
            // Quality 5 of 11: the best that is not much slower than gzip. The window is 4 MiB.
            let params = brotli::enc::BrotliEncoderParams {
                quality: 5,
                lgwin: 22,
                size_hint: content.len(),
                ..Default::default()
            };
            let mut packed = Vec::new();
            brotli::BrotliCompress(&mut &content[..], &mut packed, &params).ok()?;
            Some(packed.into())
        }
        #[cfg(feature = "zstd")]
        Coding::Zstd => {
            let mut packed = vec![0; zstd_safe::compress_bound(content.len())];
            let len = zstd_safe::compress(&mut packed[..], content, 6).ok()?;
            packed.truncate(len);
            Some(packed.into())
        }
        #[cfg(feature = "gzip")]
        Coding::Gzip => {
            use std::io::Write;
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(content).ok()?;
            Some(encoder.finish().ok()?.into())
        }
        #[allow(unreachable_patterns, reason = "all codings may be compiled in")]
        _ => None,
    }
}

//! Media types by file name.
//!
//! The text types have `charset=utf-8`. The JSON and XML types have none, because such a file says
//! itself how it is encoded. Source code is `text/plain`, so that a browser shows it. So `.ts` is
//! TypeScript, not an MPEG stream.
//!
//! `cache.rs` asks [`by_name`] when it reads a file.

/// The type of a file without an extension, and of a file with an extension that is not in the
/// table.
pub const DEFAULT: &str = "application/octet-stream";

/// The longest extension in the table.
const EXTENSION_BYTES_MAX: usize = 11;

/// The media type of the file `name`, which may be a path. The extension decides; upper and lower
/// case are alike. The text behind a leading dot is no extension.
///
/// # Complexity
/// A binary search; no allocation.
///
/// # Examples
/// ```
/// use selvedge::http::mime;
/// assert_eq!(mime::by_name(b"docs/index.HTML"), "text/html; charset=utf-8");
/// assert_eq!(mime::by_name(b"archive.tar.gz"), "application/gzip");
/// assert_eq!(mime::by_name(b"README"), mime::DEFAULT);
/// ```
pub fn by_name(name: &[u8]) -> &'static str {
    let component = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
    let Some(dot) = component.iter().rposition(|&byte| byte == b'.').filter(|&dot| dot > 0) else {
        return DEFAULT;
    };
    let extension = &component[dot + 1..];
    let mut lower = [0; EXTENSION_BYTES_MAX];
    let Some(lower) = lower.get_mut(..extension.len()) else { return DEFAULT };
    lower.copy_from_slice(extension);
    lower.make_ascii_lowercase();
    match TYPES.binary_search_by(|(known, _)| known.as_bytes().cmp(lower)) {
        Ok(index) => TYPES[index].1,
        Err(_) => DEFAULT,
    }
}

/// Sorted by extension.
#[rustfmt::skip]
const TYPES: &[(&str, &str)] = &[
    ("3g2", "video/3gpp2"),
    ("3gp", "video/3gpp"),
    ("7z", "application/x-7z-compressed"),
    ("aac", "audio/aac"),
    ("ai", "application/postscript"),
    ("aif", "audio/aiff"),
    ("aiff", "audio/aiff"),
    ("apk", "application/vnd.android.package-archive"),
    ("apng", "image/apng"),
    ("asc", "text/plain; charset=utf-8"),
    ("atom", "application/atom+xml"),
    ("avi", "video/vnd.avi"),
    ("avif", "image/avif"),
    ("avifs", "image/avif"),
    ("bib", "text/plain; charset=utf-8"),
    ("bin", "application/octet-stream"),
    ("bmp", "image/bmp"),
    ("br", "application/x-brotli"),
    ("bz2", "application/x-bzip2"),
    ("c", "text/plain; charset=utf-8"),
    ("cc", "text/plain; charset=utf-8"),
    ("cer", "application/pkix-cert"),
    ("cfg", "text/plain; charset=utf-8"),
    ("cjs", "text/javascript; charset=utf-8"),
    ("conf", "text/plain; charset=utf-8"),
    ("cpp", "text/plain; charset=utf-8"),
    ("crt", "application/x-x509-ca-cert"),
    ("css", "text/css; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("cur", "image/vnd.microsoft.icon"),
    ("deb", "application/vnd.debian.binary-package"),
    ("diff", "text/plain; charset=utf-8"),
    ("djvu", "image/vnd.djvu"),
    ("dll", "application/octet-stream"),
    ("dmg", "application/octet-stream"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("dot", "application/msword"),
    ("dtd", "application/xml-dtd"),
    ("dxf", "image/vnd.dxf"),
    ("el", "text/plain; charset=utf-8"),
    ("eml", "message/rfc822"),
    ("eot", "application/vnd.ms-fontobject"),
    ("eps", "application/postscript"),
    ("epub", "application/epub+zip"),
    ("exe", "application/octet-stream"),
    ("flac", "audio/flac"),
    ("geojson", "application/geo+json"),
    ("gif", "image/gif"),
    ("glb", "model/gltf-binary"),
    ("gltf", "model/gltf+json"),
    ("go", "text/plain; charset=utf-8"),
    ("gpx", "application/gpx+xml"),
    ("gz", "application/gzip"),
    ("h", "text/plain; charset=utf-8"),
    ("heic", "image/heic"),
    ("heif", "image/heif"),
    ("hpp", "text/plain; charset=utf-8"),
    ("hs", "text/plain; charset=utf-8"),
    ("htm", "text/html; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/vnd.microsoft.icon"),
    ("ics", "text/calendar; charset=utf-8"),
    ("img", "application/octet-stream"),
    ("ini", "text/plain; charset=utf-8"),
    ("iso", "application/x-iso9660-image"),
    ("jar", "application/java-archive"),
    ("java", "text/plain; charset=utf-8"),
    ("jfif", "image/jpeg"),
    ("jp2", "image/jp2"),
    ("jpe", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("jsonld", "application/ld+json"),
    ("jsx", "text/plain; charset=utf-8"),
    ("jxl", "image/jxl"),
    ("kml", "application/vnd.google-earth.kml+xml"),
    ("kmz", "application/vnd.google-earth.kmz"),
    ("kt", "text/plain; charset=utf-8"),
    ("ktx2", "image/ktx2"),
    ("lisp", "text/plain; charset=utf-8"),
    ("log", "text/plain; charset=utf-8"),
    ("lua", "text/plain; charset=utf-8"),
    ("lz4", "application/x-lz4"),
    ("m2ts", "video/mp2t"),
    ("m3u", "audio/mpegurl"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("m4a", "audio/mp4"),
    ("m4v", "video/mp4"),
    ("map", "application/json"),
    ("markdown", "text/markdown; charset=utf-8"),
    ("mathml", "application/mathml+xml"),
    ("md", "text/markdown; charset=utf-8"),
    ("mhtml", "multipart/related"),
    ("mid", "audio/midi"),
    ("midi", "audio/midi"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("mka", "audio/matroska"),
    ("mkv", "video/matroska"),
    ("ml", "text/plain; charset=utf-8"),
    ("mli", "text/plain; charset=utf-8"),
    ("mobi", "application/x-mobipocket-ebook"),
    ("mov", "video/quicktime"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("mpd", "application/dash+xml"),
    ("mpeg", "video/mpeg"),
    ("mpg", "video/mpeg"),
    ("msi", "application/octet-stream"),
    ("n3", "text/n3; charset=utf-8"),
    ("ndjson", "application/x-ndjson"),
    ("nt", "application/n-triples"),
    ("obj", "model/obj"),
    ("odg", "application/vnd.oasis.opendocument.graphics"),
    ("odp", "application/vnd.oasis.opendocument.presentation"),
    ("ods", "application/vnd.oasis.opendocument.spreadsheet"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("oga", "audio/ogg"),
    ("ogg", "audio/ogg"),
    ("ogv", "video/ogg"),
    ("opus", "audio/ogg"),
    ("otf", "font/otf"),
    ("p7b", "application/x-pkcs7-certificates"),
    ("parquet", "application/vnd.apache.parquet"),
    ("patch", "text/plain; charset=utf-8"),
    ("pdf", "application/pdf"),
    ("pem", "application/x-pem-file"),
    ("pgp", "application/pgp-encrypted"),
    ("pl", "text/plain; charset=utf-8"),
    ("png", "image/png"),
    ("ppt", "application/vnd.ms-powerpoint"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("ps", "application/postscript"),
    ("psd", "image/vnd.adobe.photoshop"),
    ("py", "text/plain; charset=utf-8"),
    ("qt", "video/quicktime"),
    ("rar", "application/vnd.rar"),
    ("rb", "text/plain; charset=utf-8"),
    ("rdf", "application/rdf+xml"),
    ("rpm", "application/x-rpm"),
    ("rs", "text/plain; charset=utf-8"),
    ("rss", "application/rss+xml"),
    ("rtf", "application/rtf"),
    ("scala", "text/plain; charset=utf-8"),
    ("scm", "text/plain; charset=utf-8"),
    ("sh", "text/plain; charset=utf-8"),
    ("shtml", "text/html; charset=utf-8"),
    ("sig", "application/pgp-signature"),
    ("so", "application/octet-stream"),
    ("sql", "application/sql"),
    ("sqlite", "application/vnd.sqlite3"),
    ("srt", "application/x-subrip"),
    ("stl", "model/stl"),
    ("svg", "image/svg+xml"),
    ("svgz", "image/svg+xml"),
    ("swf", "application/x-shockwave-flash"),
    ("swift", "text/plain; charset=utf-8"),
    ("tar", "application/x-tar"),
    ("tex", "application/x-tex"),
    ("text", "text/plain; charset=utf-8"),
    ("tgz", "application/gzip"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("toml", "application/toml"),
    ("torrent", "application/x-bittorrent"),
    ("ts", "text/plain; charset=utf-8"),
    ("tsv", "text/tab-separated-values; charset=utf-8"),
    ("tsx", "text/plain; charset=utf-8"),
    ("ttc", "font/collection"),
    ("ttf", "font/ttf"),
    ("ttl", "text/turtle; charset=utf-8"),
    ("txt", "text/plain; charset=utf-8"),
    ("usdz", "model/vnd.usdz+zip"),
    ("vcf", "text/vcard; charset=utf-8"),
    ("vim", "text/plain; charset=utf-8"),
    ("vtt", "text/vtt; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("weba", "audio/webm"),
    ("webm", "video/webm"),
    ("webmanifest", "application/manifest+json"),
    ("webp", "image/webp"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("xhtml", "application/xhtml+xml"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", "application/xml"),
    ("xsd", "application/xml"),
    ("xsl", "application/xslt+xml"),
    ("xslt", "application/xslt+xml"),
    ("xz", "application/x-xz"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
    ("zst", "application/zstd"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_well_formed() {
        assert!(TYPES.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(TYPES.iter().map(|row| row.0.len()).max(), Some(EXTENSION_BYTES_MAX));
        for (extension, media_type) in TYPES {
            assert!(
                extension.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()),
                "{extension}"
            );
            assert_eq!(
                media_type.starts_with("text/"),
                media_type.ends_with("; charset=utf-8"),
                "{extension}"
            );
            assert_eq!(by_name(format!("a.{extension}").as_bytes()), *media_type);
            assert_eq!(by_name(format!("a.{}", extension.to_uppercase()).as_bytes()), *media_type);
        }
    }

    #[test]
    fn names() {
        for (name, expected) in [
            (&b"a.b/c"[..], DEFAULT),
            (b".html", DEFAULT),
            (b"a/.html", DEFAULT),
            (b"a.", DEFAULT),
            (b"", DEFAULT),
            (b"a.averyveryverylongextension", DEFAULT),
            (b"a.\xff", DEFAULT),
            (b"a.b.svg", "image/svg+xml"),
        ] {
            assert_eq!(by_name(name), expected, "{name:?}");
        }
    }
}

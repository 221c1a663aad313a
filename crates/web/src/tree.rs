//! [`FileTree`]: files that lie in memory, or in the program itself, as a handler.

use bytes::Bytes;
use selvedge_handler::{Handler, Request, Response};
use selvedge_http::{FileStore, StoredFile, answer_from};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::SystemTime;

/// Files in memory, by their paths.
///
/// It answers as the server of a directory does: conditions, ranges, `index.html`, redirects to a
/// path with `/` at its end.
///
/// # Examples
/// ```
/// use selvedge::web::{Router, FileTree, testing::get};
///
/// let tree = FileTree::new()
///     .file("index.html", "<h1>Loom</h1>")
///     .file("css/loom.css", "h1 { color: navy }");
/// // With a program: `.file("logo.png", include_bytes!("logo.png").as_slice())`.
/// selvedge::run_local(async {
///     let router = Router::new().nest("/static", tree);
///     let page = get(&router, "/static/").await;
///     assert_eq!(page.text(), "<h1>Loom</h1>");
///     assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
///     assert_eq!(get(&router, "/static/css").await.header("location"), Some("/static/css/"));
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FileTree {
    files: BTreeMap<String, (Bytes, u64)>,
    made: SystemTime,
}

impl FileTree {
    /// No files.
    pub fn new() -> FileTree {
        FileTree { files: BTreeMap::new(), made: SystemTime::now() }
    }

    /// The tree with one more file. `path` has no `/` at its beginning.
    pub fn file(mut self, path: &str, content: impl Into<Bytes>) -> FileTree {
        let content = content.into();
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        self.files.insert(path.into(), (content, hasher.finish()));
        self
    }
}

impl Default for FileTree {
    fn default() -> FileTree {
        FileTree::new()
    }
}

impl FileStore for FileTree {
    async fn find(&self, name: &str) -> std::io::Result<Option<StoredFile>> {
        Ok(self.files.get(name).map(|(content, version)| StoredFile {
            content: content.clone().into(),
            modified: self.made,
            version: *version,
        }))
    }

    async fn is_directory(&self, name: &str) -> std::io::Result<bool> {
        let prefix = format!("{name}/");
        Ok(self.files.range(prefix.clone()..).next().is_some_and(|(path, _)| path.starts_with(&prefix)))
    }
}

impl Handler for FileTree {
    fn call(&self, request: Request) -> impl Future<Output = Response> {
        answer_from(self, request)
    }
}

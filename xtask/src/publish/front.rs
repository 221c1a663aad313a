//! The part of the front page, `site/index.html`, that shows all systems and programs: each with a
//! published figure, the commit that was measured, and its picture. `publish.rs` calls `cards` and
//! puts the result between the marks of the page.
//!
//! A row that is not measured is an error, so a figure that gets a new name changes the lists here.

use super::measured::{Figure, number};
use super::plot::Plot;
use super::svg::escaped;
use std::fmt::Write;

/// A published row, and the words before its values.
#[derive(Debug)]
struct Best {
    words: &'static str,
    figure: &'static str,
    case: &'static str,
    ours: &'static str,
    peer: &'static str,
    /// How the title of the picture begins.
    picture: &'static str,
}

/// A system or a program.
#[derive(Debug)]
struct Card {
    name: &'static str,
    /// The page about it, seen from the front page.
    page: &'static str,
    /// What it is, as HTML.
    text: &'static str,
    shown: Best,
}

const SYSTEMS: [Card; 7] = [
    Card {
        name: "Threads",
        page: "guide/threads/",
        text: "An <code>async fn</code> is a thread, its system calls are values, and the scheduler is a program. Work \
               stealing, one loop for each core, priorities, and a simulated world are ready-made.",
        shown: Best {
            words: "memory of a thread",
            figure: "threads-memory",
            case: "100000 threads",
            ours: "selvedge",
            peer: "tokio",
            picture: "100000 to",
        },
    },
    Card {
        name: "Lightweight concurrency",
        page: "guide/lightweight/",
        text: "<code>MVar</code>s and queues that hand a value on directly, the operations of the paper in direct \
               style, and nine ways to make a thread behind one interface.",
        shown: Best {
            words: "hand over an <code>MVar</code> in a ring of 1000",
            figure: "mvar-ring",
            case: "ring of 1000 threads, on one OS thread for ever",
            ours: "selvedge MVar",
            peer: "GHC MVar",
            picture: "ring of 1000 threads, on one OS thread for ever",
        },
    },
    Card {
        name: "Transactions and lazy values",
        page: "guide/transactions/",
        text: "Blocks of reads and writes that happen at once or not at all, and wait with <code>retry</code>; and \
               values that are computed once, when a thread first forces them.",
        shown: Best {
            words: "a transaction of 1000 reads",
            figure: "stm-size",
            case: "1000 reads",
            ours: "selvedge TVar",
            peer: "GHC STM",
            picture: "1000 reads",
        },
    },
    Card {
        name: "Concurrent Collections",
        page: "guide/cnc/",
        text: "Steps that get and put items: a program without a word about order, and the same result under every \
               scheduler.",
        shown: Best {
            words: "a cell of a table, on two CPUs",
            figure: "cnc-wavefront",
            case: "a cell, 2 workers",
            ours: "selvedge, steps put tags",
            peer: "TBB continue_node",
            picture: "a cell, 2 workers",
        },
    },
    Card {
        name: "Coroutine pipelines",
        page: "guide/pipelines/",
        text: "Producers, transducers and consumers that are joined by <code>&gt;&gt;</code>, and branches that are \
               merged in order; between files, sockets, processes and queues.",
        shown: Best {
            words: "the paper's <code>grep -n</code>",
            figure: "pipe-grep",
            case: "grep -n, coroutines",
            ours: "selvedge",
            peer: "conduit",
            picture: "grep -n, coroutines",
        },
    },
    Card {
        name: "Message passing (MPI)",
        page: "guide/mpi/",
        text: "Typed messages between ranks: over the MPI of a cluster, between processes, or between threads of one \
               process. A thread that waits for a message parks. Graphs and pipelines may span ranks.",
        shown: Best {
            words: "the CPU that a rank takes while it waits for a message",
            figure: "mpi-idle",
            case: "half a second without a message, over libmpi",
            ours: "selvedge over Open MPI",
            peer: "C, Open MPI",
            picture: "half a second without a message, over libmpi",
        },
    },
    Card {
        name: "Web server",
        page: "guide/web/",
        text: "HTTP/1.1 with a thread for each connection, as a library and as a program: web applications, files, CGI, \
               FastCGI, and proxies.",
        shown: Best {
            words: "instructions of a request, with its line in the log",
            figure: "instructions",
            case: "keep-alive request, log on",
            ours: "selvedge-httpd",
            peer: "nginx tuned",
            picture: "keep-alive request, log on",
        },
    },
];

const PROGRAMS: [Card; 5] = [
    Card {
        name: "selvedge-httpd",
        page: "start/",
        text: "Serves a directory or a whole site: conditions, ranges, programs, proxies, an access log, a reload that \
               drops nothing. It serves this page, if you started it as the page Start says.",
        shown: Best {
            words: "requests that are sent 16 at a time",
            figure: "web-pipelined",
            case: "request rate",
            ours: "selvedge-httpd",
            peer: "nginx tuned",
            picture: "request rate",
        },
    },
    Card {
        name: "selvedge-make",
        page: "guide/make/",
        text: "Builds what a <code>build.ninja</code> describes, with ninja's options and its log.",
        shown: Best {
            words: "10,000 edges with nothing to do",
            figure: "make-overhead",
            case: "nothing to do, 10000 edges",
            ours: "selvedge-make",
            peer: "ninja",
            picture: "nothing to do, 10000 edges, in ms",
        },
    },
    Card {
        name: "selvedge-pipe",
        page: "guide/shell/",
        text: "A shell of typed stages, which checks a pipeline before anything runs.",
        shown: Best {
            words: "count the lines with a text in 500 MB",
            figure: "pipe-shell",
            case: "count the lines with a text",
            ours: "selvedge",
            peer: "mawk",
            picture: "count the lines with a text",
        },
    },
    Card {
        name: "selvedge-dns",
        page: "guide/dns/",
        text: "A resolver with a cache that validates, and an authority for zones.",
        shown: Best {
            words: "answers from the cache",
            figure: "dns",
            case: "cache hits: query rate",
            ours: "selvedge-dns",
            peer: "unbound",
            picture: "cache hits: query rate",
        },
    },
    Card {
        name: "selvedge-ftpd",
        page: "guide/ftp/",
        text: "Files for anonymous clients, and for users from a file; with TLS.",
        shown: Best {
            words: "a file of 1 GB",
            figure: "ftp",
            case: "RETR: rate",
            ours: "selvedge-ftpd",
            peer: "vsftpd",
            picture: "RETR: rate",
        },
    },
];

/// The cards of all systems and programs, as HTML.
///
/// # Errors
/// When a row or a picture is not published.
pub(super) fn cards(figures: &[(Figure, Vec<Plot>)]) -> Result<String, String> {
    let mut html = "<section>\n<h2 id=\"systems\">Seven systems on one kind of thread</h2>\n".to_string();
    list(&mut html, &SYSTEMS, figures)?;
    html.push_str("</section>\n\n<section>\n<h2 id=\"programs\">Five programs</h2>\n");
    list(&mut html, &PROGRAMS, figures)?;
    html.push_str(
        "<p>These are figures in which Selvedge does best. <a href=\"figures/#where-we-lose\">Where it loses</a> is a \
         list too.</p>\n</section>\n",
    );
    Ok(html)
}

fn list(html: &mut String, cards: &[Card], figures: &[(Figure, Vec<Plot>)]) -> Result<(), String> {
    html.push_str("<ul class=\"cards\">\n");
    for Card { name, page, text, shown } in cards {
        let _ = writeln!(html, "<li><h3><a href=\"{page}\">{name}</a></h3><p>{text}</p>");
        html.push_str(&figure(shown, figures)?);
        html.push_str("</li>\n");
    }
    html.push_str("</ul>\n");
    Ok(())
}

/// The values of a row, with its picture.
fn figure(shown: &Best, figures: &[(Figure, Vec<Plot>)]) -> Result<String, String> {
    let Best { words, figure: name, case, ours, peer, picture } = shown;
    let missing = |what: &str| format!("{name}: {case}: no {what}, which the front page shows");
    let (figure, plots) =
        figures.iter().find(|(figure, _)| figure.name == *name).ok_or_else(|| missing("figure"))?;
    let value = |system: &str| {
        let row = figure.row(case, system).ok_or_else(|| missing(&format!("row of {system}")))?;
        let value = row.value.as_ref().map_err(|why| missing(why))?;
        Ok::<_, String>((format!("{} {}", number(*value), row.unit), row.ratio))
    };
    let ((of_ours, _), (of_peer, ratio)) = (value(ours)?, value(peer)?);
    let ratio = number(ratio.ok_or_else(|| missing("ratio"))?);
    let title = format!("{name}: {picture}");
    let plot = plots.iter().find(|plot| plot.alt.starts_with(&title)).ok_or_else(|| missing("picture"))?;
    let (file, alt, commit) = (&plot.file, escaped(&plot.alt), &figure.commit);
    let (of_ours, of_peer, peer) = (escaped(&of_ours), escaped(&of_peer), escaped(peer));
    Ok(format!(
        "<p class=\"best\"><strong>{ratio}×</strong> {words}: {of_ours}, {peer} {of_peer}. Commit \
         <code>{commit}</code>.</p>\n<a href=\"figures/#{name}\"><img src=\"figures/{file}\" alt=\"{alt}\" \
         loading=\"lazy\"></a>\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::plot::plots;
    use super::super::samples;
    use super::*;

    fn shown(peer: &'static str, picture: &'static str) -> Result<String, String> {
        let of_sample = samples::figure();
        let plots = plots(&of_sample);
        let (words, case) = ("a yield", "1");
        let shown = Best { words, figure: "threads-switch", case, ours: "selvedge", peer, picture };
        figure(&shown, &[(of_sample, plots)])
    }

    #[test]
    fn a_card_has_its_values_its_commit_and_its_picture() {
        let html = shown("tokio", "1").unwrap();
        for text in [
            "<strong>12.7×</strong> a yield: 4.57 ns, tokio 58.1 ns. Commit <code>0a1b2c3</code>.",
            "<img src=\"figures/threads-switch-1.svg\"",
        ] {
            assert!(html.contains(text), "{text}: {html}");
        }
    }

    #[test]
    fn what_is_not_published_is_named() {
        assert!(shown("Go", "1").unwrap_err().contains("no row of Go"));
        assert!(shown("tokio", "7").unwrap_err().contains("no picture"));
        assert!(cards(&[]).unwrap_err().starts_with("threads-memory: 100000 threads: no figure"));
    }
}

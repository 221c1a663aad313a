//! A parallel make as a graph: a tag for each target that is wanted, and an item for each target
//! that was made. The step of a target puts the tags of what it needs, and gets their items. The
//! number of workers is the number of recipes that run at the same time.
//!
//! A recipe that fails makes its target `None`, and so is every target that needs it. All others
//! are made. What no rule makes, and targets that need one another in a circle, are reported by the
//! graph itself.
//!
//! # Prints
//! ```text
//! made: lex.o, main.o, program, util.o
//! made: lex.o, main.o, util.o; failed: program
//! made: main.o, util.o; failed: lex.o, program
//! 3 steps wait for 3 items that no step has put
//!   in a circle: make("two.h") waits for files["one.h"]; make("one.h") waits for files["two.h"];
//!   item files["one.h"]: step make("two.h")
//!   item files["three.c"]: step make("main.o")
//!   item files["two.h"]: step make("one.h")
//! ```

use selvedge::cnc::schedulers::{OneByOne, Scheduler, Stealing, TaskPool};
use selvedge::cnc::{GraphError, graph};
use std::collections::BTreeMap;

/// The time of the new file, by the times of what it needs; `None` if the recipe fails.
type Recipe = fn(&[u32]) -> Option<u32>;

/// What a target needs, and its recipe.
struct Rule {
    needs: &'static [&'static str],
    recipe: Recipe,
}

type Rules = BTreeMap<&'static str, Rule>;

fn newest(times: &[u32]) -> Option<u32> {
    Some(times.iter().max()? + 1)
}

fn fails(_: &[u32]) -> Option<u32> {
    None
}

fn rules(all: &[(&'static str, &'static [&'static str], Recipe)]) -> Rules {
    all.iter().map(|&(target, needs, recipe)| (target, Rule { needs, recipe })).collect()
}

/// Makes a target; says what was made and what was not.
fn make(rules: &Rules, target: &'static str, scheduler: &dyn Scheduler) -> Result<String, GraphError> {
    const SOURCES: [&str; 4] = ["main.c", "lex.c", "util.c", "all.h"];
    graph(|graph| {
        // A target that two others need is made once.
        let wanted = graph.memoised_tags::<&'static str>("wanted");
        let files = graph.items::<&'static str, Option<u32>>("files");
        graph
            .prescribe_async(wanted, "make", move |target, step| async move {
                let Some(rule) = rules.get(target) else { return Ok(()) };
                rule.needs.iter().try_for_each(|need| step.put_tag(wanted, need))?;
                let mut times = Vec::new();
                for &need in rule.needs {
                    times.push(*step.get(files, need).await?);
                }
                let times: Option<Vec<u32>> = times.into_iter().collect();
                step.put(files, target, times.and_then(|times| (rule.recipe)(&times)))
            })
            .makes(files, |target| *target);
        graph.initialize(|env| {
            SOURCES.into_iter().try_for_each(|file| env.put(files, file, Some(1)))?;
            env.put_tag(wanted, target)
        })?;
        Ok(graph.run(scheduler)?.finalize(|view| {
            let names = |made: bool| {
                let targets = view.iter(files).filter(|(name, _)| rules.contains_key(name));
                targets.filter(|(_, file)| file.is_some() == made).map(|(name, _)| name).collect::<Vec<_>>()
            };
            let (made, failed) = (names(true).join(", "), names(false).join(", "));
            if failed.is_empty() {
                format!("made: {made}")
            } else {
                format!("made: {made}; failed: {failed}")
            }
        }))
    })
}

fn main() {
    let program = |lex: Recipe, link: Recipe| {
        rules(&[
            ("program", &["main.o", "lex.o", "util.o"], link),
            ("main.o", &["main.c", "all.h"], newest),
            ("lex.o", &["lex.c", "all.h"], lex),
            ("util.o", &["util.c"], newest),
        ])
    };
    let circle = rules(&[
        ("main.o", &["main.c", "three.c", "one.h"], newest),
        ("one.h", &["two.h"], newest),
        ("two.h", &["one.h"], newest),
    ]);
    let projects = [
        (program(newest, newest), "program"),
        (program(newest, fails), "program"),
        (program(fails, newest), "program"),
        (circle, "main.o"),
    ];
    for (rules, target) in &projects {
        let said = |scheduler: &dyn Scheduler| match make(rules, target, scheduler) {
            Ok(made) => made,
            Err(error) => error.to_string(),
        };
        let answer = said(&OneByOne);
        for workers in [1, 2, 4, 8] {
            assert_eq!(answer, said(&Stealing::new(workers)));
            assert_eq!(answer, said(&TaskPool::fifo(workers)));
            assert_eq!(answer, said(&TaskPool::lifo(workers)));
            (0..20).for_each(|seed| assert_eq!(answer, said(&TaskPool::fuzz(workers, seed))));
        }
        println!("{answer}");
    }
}

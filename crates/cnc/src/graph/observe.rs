//! What the program sees of a [`Graph`] beside its items: the record of a run, the monitor, the
//! picture and the statistics. The types are plain data; `Core` fills them (`core/observe.rs`).

use super::Graph;
use crate::monitor::Monitor;
use crate::picture::Picture;
use crate::record::Recording;
use crate::statistics::Statistics;

impl<'g> Graph<'g, '_> {
    /// Records from now on which steps run when, at most `runs_max` of them, and which collections
    /// each step uses. The first call counts. [`Graph::picture`] then has the uses that were noted.
    ///
    /// # Complexity
    /// A step that is recorded reads the clock at its end. It reads the clock at its begin too,
    /// unless its worker had it ready when the step before ended. It takes 32 bytes. Without a
    /// record there is no cost.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, schedulers::{Replay, TaskPool}};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let steps_of = |scheduler: &dyn cnc::schedulers::Scheduler| {
    ///     cnc::graph(|graph| {
    ///         let tags = graph.tags::<u32>("tags");
    ///         let items = graph.items::<u32, u32>("items");
    ///         graph.prescribe(tags, "next", move |n, step| {
    ///             step.put(items, n + 1, step.get(items, n)? + 1)
    ///         });
    ///         graph.record(1_000);
    ///         graph.initialize(|env| {
    ///             (0..20).try_for_each(|n| env.put_tag(tags, n))?;
    ///             env.put(items, 0, 0)
    ///         })?;
    ///         graph.run(scheduler)?;
    ///         Ok::<_, cnc::GraphError>(graph.recording())
    ///     })
    /// };
    /// let recording = steps_of(&TaskPool::fuzz(1, 7))?;
    /// let replayed = steps_of(&Replay::new(recording.order()))?;
    /// assert!(recording.runs.len() > 20, "some steps have missed an item");
    /// assert_eq!(recording.order(), replayed.order());
    /// # Ok(())
    /// # }
    /// ```
    pub fn record(&'g self, runs_max: usize) {
        self.core().record(runs_max);
    }

    /// What was recorded so far; nothing without [`Graph::record`].
    pub fn recording(&'g self) -> Recording {
        self.core().recording()
    }

    /// A view of the graph for other OS threads, while it runs. Each call returns the same one. It
    /// counts from the first call on, so that comes before the environment puts tags.
    ///
    /// # Complexity
    /// A step of a monitored graph takes a lock when it begins, when it ends, and with each get and
    /// put, and its tag is written as text. All workers take the same lock. A step that waits takes
    /// some 300 bytes. Without a monitor there is no cost. The figure `cnc-trace` measures it.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, CollectionId, Items, schedulers::Stealing};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// cnc::graph(|graph| {
    ///     let loops = graph.tags("loops");
    ///     let squares = graph.items_in("squares", Items::dense(100_u32));
    ///     graph.prescribe_range(loops, "square", 10, move |range, step| {
    ///         range.into_iter().try_for_each(|n| step.put(squares, n, n * n))
    ///     });
    ///     let monitor = graph.monitor();
    ///     graph.initialize(|env| env.put_tag(loops, (0, 100)))?;
    ///     assert_eq!(monitor.progress()[0].to_string(), "square 0 of 100");
    ///     graph.run(&Stealing::new(2))?;
    ///     assert_eq!(monitor.progress()[0].bar(10), "[##########]");
    ///     let picture = monitor.picture();
    ///     let is_squares = |node: &&cnc::PictureNode| node.collection == CollectionId::Items(0);
    ///     assert_eq!(picture.nodes.iter().find(is_squares).unwrap().put, 100);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    pub fn monitor(&'g self) -> Monitor {
        self.core().monitor().clone()
    }

    /// A picture of the graph: its collections, and their uses. `selvedge::see::graph_svg` draws it
    /// as SVG, and `graph_dot` for Graphviz.
    ///
    /// Which tags prescribe which steps is known, and so are the puts that
    /// [`StepCol::makes`](crate::StepCol::makes) has declared. The other uses were noted since
    /// [`Graph::record`] or [`Graph::monitor`]. [`Monitor::picture`] has numbers too.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, ArrowKind, CollectionId, schedulers::OneByOne};
    /// use selvedge::see::graph_svg;
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let picture = cnc::graph(|graph| {
    ///     let tags = graph.tags::<u32>("numbers < 9");
    ///     let squares = graph.items("squares");
    ///     graph.prescribe(tags, "square", move |n, step| step.put(squares, n, n * n));
    ///     graph.record(0);
    ///     graph.initialize(|env| env.put_tag(tags, 3))?;
    ///     graph.run(&OneByOne)?;
    ///     Ok::<_, cnc::GraphError>(graph.picture())
    /// })?;
    /// let names: Vec<&str> = picture.nodes.iter().map(|node| node.name.as_str()).collect();
    /// assert_eq!(names, ["the environment", "square", "squares", "numbers < 9"]);
    /// let put = picture.arrows.iter().find(|arrow| arrow.to == CollectionId::Items(0)).unwrap();
    /// assert_eq!((put.from, put.kind), (CollectionId::Step(1), ArrowKind::Used));
    /// assert!(graph_svg(&picture).contains("numbers &lt; 9"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn picture(&'g self) -> Picture {
        self.core().outline().picture(self.core().used_edges())
    }

    /// How often each step has run, and how many items were put and are still there.
    pub fn statistics(&'g self) -> Statistics {
        self.core().statistics()
    }
}

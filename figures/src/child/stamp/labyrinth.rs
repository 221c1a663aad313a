//! labyrinth: connects pairs of points in a grid by paths that do not cross. A thread takes a pair,
//! searches the shortest path in a copy of the grid (Lee's algorithm), and lays it in a transaction
//! that fails if one of its points is occupied by then; it then searches again.
//!
//! `child.rs` calls `labyrinth`, and `figures/src/stamp.rs` gives the numbers.

use super::numbers::{EXACT, Random, mixed};
use super::threads::{timed, together};
use crate::child::fault;
use selvedge_stm::{TQueue, TWordArray, Tried, Tx, atomically, atomically_blocking};
use std::iter;
use std::sync::Arc;

/// The size of a run, as the input files of STAMP have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Maze {
    /// `x` and `y`: the points of a side.
    pub(crate) side: u64,
    /// `z`: the number of layers.
    pub(crate) layers: u64,
    /// `n`: the number of pairs.
    pub(crate) pairs: u64,
}

/// A pair to connect, and its number.
#[derive(Clone, Copy, Debug)]
struct Pair {
    number: u64,
    from: u32,
    to: u32,
}

/// A point that no path has, and that the search has not reached.
const FREE: u32 = 0;

/// A point that a path has.
const TAKEN: u32 = u32::MAX;

impl Maze {
    fn points(&self) -> u64 {
        self.side * self.side * self.layers
    }

    fn pairs(&self) -> Vec<Pair> {
        let mut random = Random::new(0);
        let mut is_end = vec![false; self.points() as usize];
        let mut end = || loop {
            let point = random.below(self.points());
            if !std::mem::replace(&mut is_end[point as usize], true) {
                return point as u32;
            }
        };
        (0..self.pairs).map(|number| Pair { number, from: end(), to: end() }).collect()
    }
}

/// The copy of the grid that a search works on: the points, with a border around them that is
/// always `TAKEN`, so a search does not ask for the ends of the grid. A place of it is a `u32` too.
struct Board {
    maze: Maze,
    /// The differences between the numbers of neighbouring places, modulo 2^32, in one order.
    steps: [u32; 6],
}

/// The memory of a search.
struct Search {
    /// Of each place, `FREE`, `TAKEN` or its distance.
    places: Vec<u32>,
    /// The places in the order in which they were reached, with room for the steps of the last one.
    reached: Vec<u32>,
}

impl Board {
    fn new(maze: Maze) -> Board {
        let row = maze.side as u32 + 2;
        let layer = row * row;
        let steps = [1_u32.wrapping_neg(), 1, row.wrapping_neg(), row, layer.wrapping_neg(), layer];
        Board { maze, steps }
    }

    fn search(&self) -> Search {
        let places = (self.maze.side as usize + 2).pow(2) * (self.maze.layers as usize + 2);
        Search { places: vec![TAKEN; places], reached: vec![0; places + self.steps.len()] }
    }

    /// The place of a point.
    fn place(&self, point: u32) -> u32 {
        let side = self.maze.side as u32;
        let (x, y, z) = (point % side, point / side % side, point / (side * side));
        ((z + 1) * (side + 2) + y + 1) * (side + 2) + x + 1
    }

    /// The point of a place that is not in the border.
    fn point(&self, place: u32) -> u32 {
        let side = self.maze.side as u32;
        let (x, y, z) = (place % (side + 2), place / (side + 2) % (side + 2), place / (side + 2).pow(2));
        ((z - 1) * side + y - 1) * side + x - 1
    }

    /// Copies a grid for a search: of each point, the path that has it, or 0.
    fn copy(&self, mut grid: impl Iterator<Item = u32>, search: &mut Search) {
        let side = self.maze.side as usize;
        for row in 0..side * self.maze.layers as usize {
            let first = self.place((row * side) as u32) as usize;
            for (place, number) in search.places[first..first + side].iter_mut().zip(&mut grid) {
                *place = if number == 0 { FREE } else { TAKEN };
            }
        }
    }

    /// The shortest path of a pair through free points, with both ends.
    ///
    /// `search` has a copy of the grid, and has distances in it afterwards.
    fn path(&self, pair: &Pair, search: &mut Search) -> Option<Vec<u32>> {
        let Search { places, reached } = search;
        let (from, to) = (self.place(pair.from), self.place(pair.to));
        if places[from as usize] != FREE || places[to as usize] != FREE {
            return None;
        }
        places[from as usize] = 1;
        reached[0] = from;
        let (mut at, mut len) = (0, 1);
        while places[to as usize] == FREE {
            if at == len {
                return None;
            }
            let place = reached[at];
            let distance = places[place as usize] + 1;
            for step in self.steps {
                // Without a branch, because no predictor knows which neighbours are free.
                let beside = place.wrapping_add(step);
                let seen = &mut places[beside as usize];
                let is_free = *seen == FREE;
                *seen = if is_free { distance } else { *seen };
                reached[len] = beside;
                len += usize::from(is_free);
            }
            at += 1;
        }
        let mut path = vec![pair.to];
        let mut place = to;
        while place != from {
            let distance = places[place as usize];
            let beside = self.steps.map(|step| place.wrapping_add(step));
            let is_before = |beside: &u32| places[*beside as usize] == distance - 1;
            place = beside.into_iter().find(is_before).expect("the search came from somewhere");
            path.push(self.point(place));
        }
        Some(path)
    }

    /// Whether two points are neighbours.
    fn are_beside(&self, one: u32, other: u32) -> bool {
        let (one, other) = (self.place(one), self.place(other));
        self.steps.iter().any(|step| one.wrapping_add(*step) == other)
    }
}

/// The number of the path that has a point, from 1 on; or 0.
type Grid = TWordArray<u32>;

/// Lays a path, if all its points are free. Whether they are.
fn lay(tx: &Tx, grid: &Grid, pair: &Pair, path: &[u32]) -> Tried<bool> {
    for &point in path {
        if grid.read(tx, point as usize)? != 0 {
            return Ok(false);
        }
    }
    for &point in path {
        grid.write(tx, point as usize, pair.number as u32 + 1);
    }
    Ok(true)
}

/// The state that the threads share.
struct Routing {
    board: Board,
    pairs: Vec<Pair>,
    work: TQueue<u32>,
    grid: Grid,
}

impl Routing {
    fn new(maze: Maze) -> Routing {
        let work = TQueue::new();
        for number in 0..maze.pairs as u32 {
            atomically_blocking(|tx| work.push(tx, number));
        }
        let grid = TWordArray::new(iter::repeat_n(0, maze.points() as usize));
        Routing { board: Board::new(maze), pairs: maze.pairs(), work, grid }
    }

    /// Connects pairs until there are none; the paths.
    async fn route(&self) -> Vec<(Pair, Vec<u32>)> {
        let mut search = self.board.search();
        let mut paths = Vec::new();
        while let Some(number) = atomically(|tx| self.work.try_pop(tx)).await {
            let pair = self.pairs[number as usize];
            loop {
                self.board.copy(self.grid.iter_now(), &mut search);
                let Some(path) = self.board.path(&pair, &mut search) else { break };
                if atomically(|tx| lay(tx, &self.grid, &pair, &path)).await {
                    paths.push((pair, path));
                    break;
                }
            }
        }
        paths
    }

    /// The paths that are not connected, do not have their ends, or are not in the grid as they
    /// are; the points that the grid has and no path; and the pairs without a path that have a way.
    fn violations(&self, paths: &[(Pair, Vec<u32>)]) -> u64 {
        let is_wrong = |(pair, path): &&(Pair, Vec<u32>)| {
            let is_laid = |&point: &u32| self.grid.read_now(point as usize) == pair.number as u32 + 1;
            let are_beside = |two: &[u32]| self.board.are_beside(two[0], two[1]);
            path.first() != Some(&pair.to)
                || path.last() != Some(&pair.from)
                || !path.iter().all(is_laid)
                || !path.windows(2).all(are_beside)
        };
        let points: usize = paths.iter().map(|(_, path)| path.len()).sum();
        let taken = self.grid.iter_now().filter(|number| *number != 0).count();
        let has_path = |pair: &Pair| paths.iter().any(|(laid, _)| laid.number == pair.number);
        let has_way = |pair: &&Pair| {
            let mut search = self.board.search();
            self.board.copy(self.grid.iter_now(), &mut search);
            self.board.path(pair, &mut search).is_some()
        };
        let missed = self.pairs.iter().filter(|pair| !has_path(pair)).filter(has_way).count();
        (paths.iter().filter(is_wrong).count() + taken.abs_diff(points) + missed) as u64
    }
}

fn checksum(grid: impl Iterator<Item = u32>) -> u64 {
    grid.fold(0, |sum, number| mixed(sum, u64::from(number) + 1)) & EXACT
}

/// The checksum of the grid that a run with one thread must print.
pub(crate) fn expected(maze: &Maze) -> u64 {
    let board = Board::new(*maze);
    let mut search = board.search();
    let mut grid = vec![0; maze.points() as usize];
    for pair in maze.pairs() {
        board.copy(grid.iter().copied(), &mut search);
        for point in board.path(&pair, &mut search).unwrap_or_default() {
            grid[point as usize] = pair.number as u32 + 1;
        }
    }
    checksum(grid.into_iter())
}

/// Threads that share the pairs.
pub(in crate::child) fn labyrinth(threads: u64, maze: Maze) {
    let routing = Arc::new(Routing::new(maze));
    let shared = routing.clone();
    let paths = timed(threads, async move {
        let route = |_| {
            let routing = shared.clone();
            async move { routing.route().await }
        };
        together(threads, route).await.concat()
    });
    if fault() != 0 {
        // A run that is to be wrong loses a point of a path.
        let first = paths[0].1[0] as usize;
        atomically_blocking(|tx| routing.grid.modify(tx, first, |_| 0));
    }
    println!("paths {}", paths.len());
    println!("violations {}", routing.violations(&paths));
    println!("checksum {}", checksum(routing.grid.iter_now()));
}

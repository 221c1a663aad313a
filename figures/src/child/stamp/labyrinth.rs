//! labyrinth: connects pairs of points in a grid by paths that do not cross. A thread takes a pair,
//! searches the shortest path in a copy of the grid (Lee's algorithm), and lays it in a transaction
//! that fails if one of its points is occupied by then; it then searches again.

use std::sync::Arc;

use selvedge_stm::{TQueue, TWord, Tried, Tx, atomically, atomically_blocking};

use super::{EXACT, Random, fault, mixed, timed, together};

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

/// The grid as a search sees it.
struct Board {
    /// Of each point, one bit for each of the steps that stay in the grid.
    inside: Vec<u8>,
    /// The differences between the numbers of neighbours, modulo 2^32.
    steps: [u32; 6],
}

impl Board {
    fn new(maze: &Maze) -> Board {
        let (side, layer) = (maze.side as u32, (maze.side * maze.side) as u32);
        let inside = |point: u32| {
            let (x, y, z) = (point % side, point / side % side, point / layer);
            let last = (side - 1, maze.layers as u32 - 1);
            let stays = [x > 0, x < last.0, y > 0, y < last.0, z > 0, z < last.1];
            (0..).zip(stays).fold(0, |bits, (step, stays)| bits | u8::from(stays) << step)
        };
        let steps = [1_u32.wrapping_neg(), 1, side.wrapping_neg(), side, layer.wrapping_neg(), layer];
        Board { inside: (0..maze.points() as u32).map(inside).collect(), steps }
    }

    /// The points beside a point, in one order.
    #[inline(always)]
    fn beside(&self, point: u32) -> impl Iterator<Item = u32> + use<'_> {
        let inside = self.inside[point as usize];
        let stays = move |step: &(u8, &u32)| inside >> step.0 & 1 != 0;
        (0..).zip(&self.steps).filter(stays).map(move |(_, step)| point.wrapping_add(*step))
    }

    /// The shortest path of a pair through free points, with both ends.
    ///
    /// `grid` has `FREE` or `TAKEN` for each point, and has distances in it afterwards.
    fn path(&self, pair: &Pair, grid: &mut [u32], reached: &mut Vec<u32>) -> Option<Vec<u32>> {
        if grid[pair.from as usize] != FREE || grid[pair.to as usize] != FREE {
            return None;
        }
        grid[pair.from as usize] = 1;
        reached.clear();
        reached.push(pair.from);
        let mut at = 0;
        while grid[pair.to as usize] == FREE {
            let point = *reached.get(at)?;
            let distance = grid[point as usize];
            for beside in self.beside(point) {
                if grid[beside as usize] == FREE {
                    grid[beside as usize] = distance + 1;
                    reached.push(beside);
                }
            }
            at += 1;
        }
        let mut path = vec![pair.to];
        let mut point = pair.to;
        while point != pair.from {
            let distance = grid[point as usize];
            let is_before = |beside: &u32| grid[*beside as usize] == distance - 1;
            point = self.beside(point).find(is_before).expect("the search came from somewhere");
            path.push(point);
        }
        Some(path)
    }
}

/// The number of the path that has a point, from 1 on; or 0.
type Grid = Vec<TWord<u32>>;

/// Lays a path, if all its points are free. Whether they are.
fn lay(tx: &Tx, grid: &Grid, pair: &Pair, path: &[u32]) -> Tried<bool> {
    for &point in path {
        if grid[point as usize].read(tx)? != 0 {
            return Ok(false);
        }
    }
    for &point in path {
        grid[point as usize].write(tx, pair.number as u32 + 1);
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
        let grid = (0..maze.points()).map(|_| TWord::new(0)).collect();
        Routing { board: Board::new(&maze), pairs: maze.pairs(), work, grid }
    }

    /// The grid of this moment, for a search.
    fn copied(&self) -> impl Iterator<Item = u32> {
        self.grid.iter().map(|point| if point.read_now() == 0 { FREE } else { TAKEN })
    }

    /// Connects pairs until there are none; the paths.
    async fn route(&self) -> Vec<(Pair, Vec<u32>)> {
        let (mut copy, mut reached) = (Vec::new(), Vec::new());
        let mut paths = Vec::new();
        while let Some(number) = atomically(|tx| self.work.try_pop(tx)).await {
            let pair = self.pairs[number as usize];
            loop {
                copy.clear();
                copy.extend(self.copied());
                let Some(path) = self.board.path(&pair, &mut copy, &mut reached) else { break };
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
            let is_laid = |&point: &u32| self.grid[point as usize].read_now() == pair.number as u32 + 1;
            let are_beside = |two: &[u32]| self.board.beside(two[0]).any(|beside| beside == two[1]);
            path.first() != Some(&pair.to)
                || path.last() != Some(&pair.from)
                || !path.iter().all(is_laid)
                || !path.windows(2).all(are_beside)
        };
        let points: usize = paths.iter().map(|(_, path)| path.len()).sum();
        let taken = self.grid.iter().filter(|point| point.read_now() != 0).count();
        let has_path = |pair: &Pair| paths.iter().any(|(laid, _)| laid.number == pair.number);
        let has_way = |pair: &&Pair| {
            self.board.path(pair, &mut self.copied().collect::<Vec<_>>(), &mut Vec::new()).is_some()
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
    let board = Board::new(maze);
    let mut grid = vec![0; maze.points() as usize];
    for pair in maze.pairs() {
        let mut copy: Vec<u32> = grid.iter().map(|&number| if number == 0 { FREE } else { TAKEN }).collect();
        for point in board.path(&pair, &mut copy, &mut Vec::new()).unwrap_or_default() {
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
        let first = &routing.grid[paths[0].1[0] as usize];
        atomically_blocking(|tx| first.modify(tx, |_| 0));
    }
    println!("paths {}", paths.len());
    println!("violations {}", routing.violations(&paths));
    println!("checksum {}", checksum(routing.grid.iter().map(TWord::read_now)));
}

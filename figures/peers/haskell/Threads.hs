-- | GHC's forkIO threads measured like every other contender of the thread figures (non-threaded
-- runtime).
--
-- usage: Threads memory N | switch N TOTAL | spawn TOTAL | spawn-handle TOTAL | ring K HOPS
-- Prints @name value@ lines; times are nanoseconds of this process's CPU (ns) and of the wall clock
-- (wall_ns).
module Main (main) where

import Control.Concurrent
import Control.Exception (evaluate)
import Control.Monad
import Data.Word (Word64)
import Foreign.Marshal.Alloc (malloc)
import Foreign.Ptr (Ptr)
import Foreign.Storable (peek, poke)
import GHC.Clock (getMonotonicTimeNSec)
import System.CPUTime (getCPUTime)
import System.Environment (getArgs)
import System.Exit (ExitCode (..), exitWith)
import System.IO (hFlush, stdout)

data Times = Times !Double !Double

now :: IO Times
now = do
  cpu <- getCPUTime
  wall <- getMonotonicTimeNSec
  pure (Times (fromIntegral cpu / 1000) (fromIntegral wall))

printTimes :: Times -> Times -> Int -> IO ()
printTimes (Times cpu0 wall0) (Times cpu1 wall1) operations = do
  putStrLn ("ns " ++ show ((cpu1 - cpu0) / fromIntegral operations))
  putStrLn ("wall_ns " ++ show ((wall1 - wall0) / fromIntegral operations))

-- | The anonymous memory that is resident, counted for the question.
rssBytes :: IO Double
rssBytes = do
  text <- readFile "/proc/self/smaps_rollup"
  case [kib | ["Anonymous:", kib, "kB"] <- map words (lines text)] of
    kib : _ -> evaluate (1024 * read kib)
    [] -> ioError (userError "Linux tells a process its size")

-- A counter outside the heap: an unboxed cell that costs no allocation per increment. One Haskell
-- thread runs at a time here, and it can lose the processor only where it allocates.
type Counter = Ptr Word64

counter :: IO Counter
counter = do
  cell <- malloc
  poke cell 0
  pure cell

increment :: Counter -> IO ()
increment cell = peek cell >>= poke cell . (+ 1)
{-# INLINE increment #-}

-- | Yields until the counter has reached the given value.
await :: Counter -> Int -> IO ()
await cell goal = do
  value <- peek cell
  when (fromIntegral value < goal) (yield >> await cell goal)

times :: Int -> IO () -> IO ()
times n action = go n
  where
    go 0 = pure ()
    go i = action >> go (i - 1)
{-# INLINE times #-}

memory :: Int -> IO ()
memory n = do
  started <- counter
  before <- rssBytes
  times n (void (forkIO (increment started >> forever yield)))
  await started n
  after <- rssBytes
  putStrLn ("bytes " ++ show ((after - before) / fromIntegral n))
  peek started >>= \live -> putStrLn ("live " ++ show live)

-- | Timed from the moment the last thread is under way, for @total@ yields. They wait at a gate
-- until all are made, since the runtime's timer would otherwise let all that there are yield in
-- between.
switches :: Int -> Int -> IO ()
switches n total = do
  started <- counter
  finished <- counter
  yields <- counter
  stop <- counter
  poke stop maxBound
  first <- newEmptyMVar
  end <- newEmptyMVar
  done <- newEmptyMVar
  gate <- newEmptyMVar
  let turn = do
        made <- peek yields
        most <- peek stop
        when (made < most) $ do
          poke yields (made + 1)
          yield
          turn
  times n $ void $ forkIO $ do
    readMVar gate
    increment started
    count <- peek started
    when (fromIntegral count == n) $ do
      poke yields 0
      poke stop (fromIntegral total)
      now >>= putMVar first
    turn
    increment finished
    ended <- peek finished
    when (ended == 1) (now >>= putMVar end)
    when (fromIntegral ended == n) (putMVar done ())
  putMVar gate ()
  takeMVar done
  from <- takeMVar first
  to <- takeMVar end
  printTimes from to total
  peek yields >>= \value -> putStrLn ("yields " ++ show value)
  peek finished >>= \value -> putStrLn ("finished " ++ show value)

spawn :: Int -> IO ()
spawn total = do
  finished <- counter
  start <- now
  forM_ [1000, 2000 .. total] $ \goal -> do
    times 1000 (void (forkIO (increment finished)))
    await finished goal
  end <- now
  printTimes start end total
  peek finished >>= \value -> putStrLn ("finished " ++ show value)

spawnHandle :: Int -> IO ()
spawnHandle total = do
  finished <- counter
  start <- now
  forM_ [1000, 2000 .. total] $ \_ -> do
    handles <- replicateM 1000 $ do
      handle <- newEmptyMVar
      _ <- forkIO (increment finished >> putMVar handle ())
      pure handle
    mapM_ takeMVar handles
  end <- now
  printTimes start end total
  peek finished >>= \value -> putStrLn ("finished " ++ show value)

ring :: Int -> Int -> IO ()
ring k hops = do
  cells <- replicateM k newEmptyMVar :: IO [MVar Int]
  finished <- counter
  done <- newEmptyMVar
  forM_ (zip cells (drop 1 (cycle cells))) $ \(from, to) -> forkIO $ do
    times (hops `div` k) $ do
      token <- takeMVar from
      putMVar to $! token + 1
    increment finished
    ended <- peek finished
    when (fromIntegral ended == k) (putMVar done ())
  start <- now
  putMVar (head cells) 0
  takeMVar done
  end <- now
  printTimes start end (hops `div` k * k)
  token <- takeMVar (head cells)
  putStrLn ("token " ++ show token)

main :: IO ()
main = do
  arguments <- getArgs
  case arguments of
    ["memory", n] -> memory (read n)
    ["switch", n, total] -> switches (read n) (read total)
    ["spawn", total] -> spawn (read total)
    ["spawn-handle", total] -> spawnHandle (read total)
    ["ring", k, hops] -> ring (read k) (read hops)
    _ -> exitWith (ExitFailure 2)
  hFlush stdout

-- | The three programs of light-weight concurrency over forkIO, MVar and Chan (non-threaded
-- runtime).
--
-- usage: Lwc kpn N ROUNDS | sieve LAST | sorter N | built N
-- Prints @name value@ lines: nanoseconds of CPU time (ns), memory of a thread (bytes), threads, and the digest
-- of the answer.
module Main (main) where

import Control.Concurrent
import Control.Monad
import Data.Bits (shiftL, shiftR, xor)
import Data.IORef
import Data.List (foldl')
import Data.Word (Word64)
import System.CPUTime (getCPUTime)
import System.Environment (getArgs)
import System.Exit (ExitCode (..), exitWith)
import System.IO (hFlush, stdout)

-- | What a program has printed, newest first, and how many threads it has created.
type Found = ([Word64], Int)

sieve :: Word64 -> IO Found
sieve end = do
  mi <- newEmptyMVar
  mo <- newEmptyMVar
  done <- newEmptyMVar
  created <- newIORef 3
  let integers i = putMVar mi i >> integers (i + 1)
      output found = do
        v <- takeMVar mo
        if v < end then output (v : found) else putMVar done (v : found)
      filterer :: Word64 -> MVar Word64 -> MVar Word64 -> IO ()
      filterer n inp out = do
        v <- takeMVar inp
        when (v `rem` n /= 0) (putMVar out v)
        filterer n inp out
      sift inp out = do
        v <- takeMVar inp
        putMVar out v
        mid <- newEmptyMVar
        _ <- forkIO (filterer v inp mid)
        modifyIORef' created (+ 1)
        sift mid out
  _ <- forkIO (integers 2)
  _ <- forkIO (sift mi mo)
  _ <- forkIO (output [])
  found <- takeMVar done
  threads <- readIORef created
  pure (found, threads)

kpn :: Int -> IO Found
kpn n = do
  fifos <- replicateM 3 newChan
  [m2, m3, m5, m23, m235] <- replicateM 5 newEmptyMVar
  done <- newEmptyMVar
  let x found left = do
        v <- takeMVar m235
        if left == 1
          then putMVar done (v : found)
          else mapM_ (`writeChan` v) fifos >> x (v : found) (left - 1)
      times a inp out = forever (readChan inp >>= \v -> putMVar out $! a * v)
      merge inp1 inp2 out = do
        v1 <- takeMVar inp1
        v2 <- takeMVar inp2
        go v1 v2
       where
        go :: Word64 -> Word64 -> IO ()
        go v1 v2 = do
          putMVar out $! min v1 v2
          case compare v1 v2 of
            LT -> takeMVar inp1 >>= \v -> go v v2
            GT -> takeMVar inp2 >>= \v -> go v1 v
            EQ -> merge inp1 inp2 out
  threads <- sequence $
    forkIO (x [] n)
      : zipWith3 (\a inp out -> forkIO (times a inp out)) [2, 3, 5] fifos [m2, m3, m5]
        ++ [forkIO (putMVar m235 1), forkIO (merge m2 m3 m23), forkIO (merge m23 m5 m235)]
  found <- takeMVar done
  mapM_ killThread threads
  pure (found, length threads)

shuffled :: Int -> [Word64]
shuffled n = map (`rem` 1000000) (take n (tail (iterate next 0x2545f4914f6cdd1d)))
 where
  next s0 = s3
   where
    s1 = s0 `xor` (s0 `shiftL` 13)
    s2 = s1 `xor` (s1 `shiftR` 7)
    s3 = s2 `xor` (s2 `shiftL` 17)

sorter :: Bool -> Int -> IO Found
sorter onlyBuild n = do
  inputs <- replicateM n newEmptyMVar
  let comparator x y lo hi = do
        a <- takeMVar x
        b <- takeMVar y
        putMVar lo $! min a b
        putMVar hi $! (max a b :: Word64)
      -- The comparators of one more number, from the last wire to the first.
      insert above new [] = pure (reverse' above new)
      insert above new (x : rest) = do
        lo <- newEmptyMVar
        hi <- newEmptyMVar
        _ <- forkIO (comparator x new lo hi)
        insert (hi : above) lo rest
      -- The wires that were passed, last first, are those below.
      reverse' above new = new : reverse above
      build wires [] = pure wires
      build wires (new : rest) = do
        wires' <- insert [] new (reverse wires)
        build (fixed wires') rest
      fixed (first : others) = first : reverse others
      fixed [] = []
  wires <- case inputs of
    [] -> pure []
    first : rest -> build [first] rest
  let threads = n * (n - 1) `div` 2
  if onlyBuild
    then pure ([], threads)
    else do
      done <- newEmptyMVar
      _ <- forkIO (mapM takeMVar wires >>= putMVar done)
      _ <- forkIO (zipWithM_ putMVar inputs (shuffled n))
      found <- takeMVar done
      pure (reverse found, threads + 2)

-- | A line of the process's status, in bytes.
memory :: String -> IO Double
memory name = do
  text <- readFile "/proc/self/status"
  case [kib | [key, kib, "kB"] <- map words (lines text), key == name ++ ":"] of
    kib : _ -> pure $! 1024 * read kib
    [] -> ioError (userError "Linux tells a process its size")

digest :: [Word64] -> Word64
digest = foldl' (\s v -> (s * 31 + v `rem` 1000003) `rem` 1000003) 0

measure :: Int -> IO Found -> IO ()
measure rounds program = do
  before <- memory "VmRSS"
  start <- getCPUTime
  founds <- replicateM rounds program
  end <- getCPUTime
  after <- memory "VmHWM"
  let (found, threads) = last founds
  putStrLn ("ns " ++ show (fromIntegral (end - start) / 1e3 / fromIntegral rounds :: Double))
  putStrLn ("bytes " ++ show (max 0 (after - before) / fromIntegral threads))
  putStrLn ("threads " ++ show threads)
  putStrLn ("digest " ++ show (digest (reverse found)))
  hFlush stdout

main :: IO ()
main = do
  arguments <- getArgs
  case arguments of
    [] -> exitWith (ExitFailure 2)
    name : numbers -> case (name, map read numbers) of
      ("kpn", [n, rounds]) -> measure rounds (kpn n)
      ("sieve", [end]) -> measure 1 (sieve (fromIntegral end))
      ("sorter", [n]) -> measure 1 (sorter False n)
      ("built", [n]) -> measure 1 (sorter True n)
      _ -> exitWith (ExitFailure 2)

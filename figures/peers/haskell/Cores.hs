{-# LANGUAGE BangPatterns #-}

-- | GHC's forkIO threads on as many capabilities as @+RTS -N@ says (threaded runtime).
--
-- usage: Cores compute THREADS BURSTS STEPS | ring K TOKENS HOPS | counter-mvar THREADS TOTAL
-- Prints @name value@ lines: the answer that is checked, and seconds, nanoseconds or millions of
-- increments a second.
module Main (main) where

import Control.Concurrent
import Control.Monad
import Data.Bits
import Data.Word (Word64)
import GHC.Clock (getMonotonicTimeNSec)
import System.Environment (getArgs)
import System.Exit (ExitCode (..), exitWith)
import System.IO (hFlush, stdout)

times :: Int -> IO () -> IO ()
times n action = go n
  where
    go 0 = pure ()
    go i = action >> go (i - 1)
{-# INLINE times #-}

-- | A xorshift generator: every step needs the one before.
burst :: Word64 -> Int -> Word64
burst !x 0 = x
burst !x n = burst c (n - 1)
  where
    a = x `xor` (x `unsafeShiftL` 13)
    b = a `xor` (a `unsafeShiftR` 7)
    c = b `xor` (b `unsafeShiftL` 17)

-- | Forks the threads, spread over the capabilities, and waits for their results.
forks :: [IO a] -> IO [a]
forks bodies = do
  results <- forM (zip [0 ..] bodies) $ \(i, body) -> do
    result <- newEmptyMVar
    _ <- forkOn i (body >>= putMVar result)
    pure result
  mapM takeMVar results

compute :: Int -> Int -> Int -> IO ()
compute threads bursts steps = do
  first <- getMonotonicTimeNSec
  results <- forks [go bursts (fromIntegral seed) | seed <- [1 .. threads]]
  let !total = sum results
  end <- getMonotonicTimeNSec
  putStrLn ("sum " ++ show total)
  putStrLn ("seconds " ++ show (fromIntegral (end - first) / 1e9 :: Double))
  where
    go :: Int -> Word64 -> IO Word64
    go 0 !x = pure (x .&. 0xffffffff)
    go n !x = do
      let !next = burst x steps
      yield
      go (n - 1) next

ring :: Int -> Int -> Int -> IO ()
ring k tokens hops = do
  cells <- replicateM k newEmptyMVar :: IO [MVar Int]
  done <- newEmptyMVar
  forM_ (zip cells (drop 1 (cycle cells))) $ \(from, to) -> forkIO $ do
    times (hops `div` k) $ do
      token <- takeMVar from
      putMVar to $! token + 1
    putMVar done ()
  let starts = [cells !! (i * k `div` tokens) | i <- [0 .. tokens - 1]]
  first <- getMonotonicTimeNSec
  forM_ starts $ \cell -> putMVar cell 0
  times k (takeMVar done)
  end <- getMonotonicTimeNSec
  putStrLn ("wall_ns " ++ show (fromIntegral (end - first) / fromIntegral (hops `div` k * k) :: Double))
  ends <- mapM takeMVar starts
  putStrLn ("token " ++ show (sum ends))

counting :: Int -> Int -> IO () -> IO Int -> IO ()
counting threads total increment count = do
  first <- getMonotonicTimeNSec
  _ <- forks (replicate threads (times (total `div` threads) increment))
  end <- getMonotonicTimeNSec
  value <- count
  putStrLn ("count " ++ show value)
  putStrLn ("rate " ++ show (fromIntegral value * 1e3 / fromIntegral (end - first) :: Double))

counterMVar :: Int -> Int -> IO ()
counterMVar threads total = do
  cell <- newMVar (0 :: Int)
  let increment = do
        value <- takeMVar cell
        putMVar cell $! value + 1
  counting threads total increment (readMVar cell)

main :: IO ()
main = do
  arguments <- getArgs
  case arguments of
    ["compute", threads, bursts, steps] -> compute (read threads) (read bursts) (read steps)
    ["ring", k, tokens, hops] -> ring (read k) (read tokens) (read hops)
    ["counter-mvar", threads, total] -> counterMVar (read threads) (read total)
    _ -> exitWith (ExitFailure 2)
  hFlush stdout

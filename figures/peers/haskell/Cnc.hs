{-# LANGUAGE BangPatterns #-}

-- | monad-par beside the graphs of steps, on as many capabilities as @+RTS -N@ says.
--
-- usage: Cnc empty WORKERS N | put WORKERS N | miss WORKERS N | tree WORKERS DEPTH
--        Cnc wavefront WORKERS SIDE
-- What each of them does is said in @figures/src/child/cnc/steps.rs@; WORKERS is for the other
-- programs. Prints @name value@ lines: ns and wall_ns of one fork, ms of all, and the answer.
module Main (main) where

import Control.Exception (evaluate)
import Control.Monad
import Control.Monad.Par
import Data.Word (Word32)
import GHC.Clock (getMonotonicTimeNSec)
import System.CPUTime (getCPUTime)
import System.Environment (getArgs)
import System.Exit (ExitCode (..), exitWith)

timed :: Int -> a -> IO a
timed operations value = do
  cpu0 <- getCPUTime
  wall0 <- getMonotonicTimeNSec
  result <- evaluate value
  wall1 <- getMonotonicTimeNSec
  cpu1 <- getCPUTime
  let wall = fromIntegral (wall1 - wall0) :: Double
      cpu = fromIntegral (cpu1 - cpu0) / 1000 :: Double
  putStrLn ("ns " ++ show (cpu / fromIntegral operations))
  putStrLn ("wall_ns " ++ show (wall / fromIntegral operations))
  putStrLn ("ms " ++ show (wall / 1e6))
  pure result

-- | Forks that fill a variable each; the sum of what is in them.
puts :: Int -> (Int -> Int) -> Par Int
puts n of_ = do
  cells <- forM [0 .. n - 1] $ \i -> do
    cell <- new
    fork (put cell (of_ i))
    pure cell
  foldM (\ !sum' cell -> (sum' +) <$> get cell) 0 cells

-- | A chain of variables, of which the last is asked for first.
miss :: Int -> Par Int
miss n = do
  first <- new
  cells <- foldM step [first] [1 .. n]
  put first 0
  get (head cells)
  where
    step (before : rest) _ = do
      cell <- new
      fork (get before >>= \value -> put cell (value + 1))
      pure (cell : before : rest)
    step [] _ = pure []

tree :: Int -> Par Int
tree 0 = pure 1
tree depth = do
  left <- spawn (tree (depth - 1))
  right <- spawn (tree (depth - 1))
  a <- get left
  b <- get right
  pure (a + b + 1)

-- | A fork for each cell.
wavefront :: Int -> Par Word32
wavefront side = do
  one <- newFull 1
  let border = replicate side one
  rows <- foldM (\above _ -> row one above) border [2 .. side]
  get (last rows)
  where
    row one above = reverse <$> foldM cell [one] (zip above (tail above))
    cell (west : rest) (northWest, north) = do
      here <- new
      fork $ do
        a <- get northWest
        b <- get north
        c <- get west
        put here (a * 3 + b + c)
      pure (here : west : rest)
    cell [] _ = pure []

main :: IO ()
main = do
  args <- getArgs
  case args of
    ["empty", _, n] -> timed (read n) (runPar (puts (read n) (const 1))) >>= answer "steps"
    ["put", _, n] -> timed (read n) (runPar (puts (read n) id)) >>= answer "sum"
    ["miss", _, n] -> timed (read n) (runPar (miss (read n))) >>= answer "last"
    ["tree", _, d] -> timed (2 ^ (read d + 1 :: Int) - 1) (runPar (tree (read d))) >>= answer "steps"
    ["wavefront", _, s] -> timed ((read s - 1) ^ (2 :: Int)) (runPar (wavefront (read s))) >>= answer "corner"
    _ -> exitWith (ExitFailure 2)
  where
    answer name value = putStrLn (name ++ " " ++ show value)

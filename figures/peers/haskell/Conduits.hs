{-# LANGUAGE BangPatterns #-}
{-# LANGUAGE OverloadedStrings #-}

-- | The paper's pipelines by the package conduit.
--
-- usage: Conduits grep | grep-n INPUT OUTPUT NEEDLE
--        Conduits stages N
-- What each of them does is said in @figures/src/child/streams@. Prints @name value@ lines.
module Main (main) where

import Conduit
import Control.Monad.State.Class (get, put)
import Data.Bits
import qualified Data.ByteString as B
import qualified Data.ByteString.Char8 as C
import qualified Data.Conduit.Combinators as CC
import Data.Word (Word64)
import GHC.Clock (getMonotonicTimeNSec)
import System.CPUTime (getCPUTime)
import System.Environment (getArgs)
import System.Exit (ExitCode (..), exitWith)
import System.IO (IOMode (..), hFileSize, withBinaryFile)

-- | Each line that holds the needle, with its end.
grep :: FilePath -> FilePath -> B.ByteString -> IO ()
grep input output needle =
  runConduitRes $
    sourceFile input .| CC.linesUnboundedAscii .| CC.filter (needle `B.isInfixOf`)
      .| CC.map (`C.snoc` '\n')
      .| sinkFile output

-- | The same of lines that are zipped with their numbers.
grepNumbered :: FilePath -> FilePath -> B.ByteString -> IO ()
grepNumbered input output needle =
  runConduitRes $
    sourceFile input .| CC.linesUnboundedAscii .| numbered
      .| CC.filter (needle `B.isInfixOf`)
      .| CC.map (`C.snoc` '\n')
      .| sinkFile output
  where
    numbered = evalStateC (1 :: Int) (awaitForever number)
    number line = do
      n <- get
      put $! n + 1
      yield (B.concat [C.pack (show n), ":", line])

-- | How many bytes that are the same for all programs are in a file, and their sum.
written :: FilePath -> IO (Int, Word64)
written path = B.foldl' add (0, 0) <$> B.readFile path
  where
    add (!count, !total) byte =
      (count + 1, (total * 0x100000001b3) `xor` fromIntegral byte)

overLines :: (FilePath -> FilePath -> B.ByteString -> IO ()) -> FilePath -> FilePath -> String -> IO ()
overLines run input output needle = do
  size <- withBinaryFile input ReadMode hFileSize
  first <- getMonotonicTimeNSec
  run input output (C.pack needle)
  end <- getMonotonicTimeNSec
  putStrLn ("rate " ++ show (fromIntegral size * 1e3 / fromIntegral (end - first) :: Double))
  (count, total) <- written output
  putStrLn ("bytes " ++ show count)
  putStrLn ("sum " ++ show (total `unsafeShiftR` 16))

stages :: Word64 -> IO ()
stages n = do
  first <- getCPUTime
  let total =
        runConduitPure $
          CC.enumFromTo 0 (n - 1) .| CC.map (* 0x9e3779b97f4a7c15)
            .| CC.filter (\m -> m `unsafeShiftR` 62 /= 0)
            .| CC.map (\m -> m `xor` (m `unsafeShiftR` 7))
            .| CC.filter (\m -> m .&. 7 /= 0)
            .| CC.map (+ 3)
            .| CC.foldl (+) 0
  putStrLn ("sum " ++ show (total `unsafeShiftR` 16 :: Word64))
  end <- getCPUTime
  putStrLn ("ns " ++ show (fromIntegral (end - first) / 1e3 / fromIntegral n :: Double))

main :: IO ()
main = do
  words' <- getArgs
  case words' of
    ["grep", input, output, needle] -> overLines grep input output needle
    ["grep-n", input, output, needle] -> overLines grepNumbered input output needle
    ["stages", n] -> stages (read n)
    _ -> putStrLn "no such program" >> exitWith (ExitFailure 2)

"""What is taken from SGLang's sources as data, read by their syntax trees and never imported: one module for each table."""

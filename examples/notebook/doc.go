// Package notebook tests digits.ipynb: make notebook.
package notebook

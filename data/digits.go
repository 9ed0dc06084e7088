package data

import (
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"strconv"
	"strings"
)

var (
	//go:embed digits.csv.gz
	digitsCSV string
	//go:embed digits_test_rows.txt
	digitsTestRows string
)

const (
	digitsSide   = 8
	digitsPixels = digitsSide * digitsSide
	digitsMax    = 16
	digitsLabels = 10
)

// Digits returns the embedded UCI set of 1,797 handwritten digits (Alpaydin and Kaynak, CC BY 4.0): 1,437 training and
// 360 test examples. Field "x" is float32 [n, 8, 8, 1], 0 (paper) to 1 (ink); "y" is int32 [n].
func Digits() (train, test *Set, err error) {
	train, test, err = readDigits(digitsCSV, digitsTestRows)
	if err != nil {
		return nil, nil, fmt.Errorf("data: digits: %w", err)
	}
	return train, test, nil
}

func readDigits(packed, testRows string) (train, test *Set, err error) {
	unpacked, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		return nil, nil, err
	}
	csv, err := io.ReadAll(unpacked)
	if err != nil {
		return nil, nil, err
	}
	var x []float32
	var y []int32
	for line := range strings.Lines(string(csv)) {
		if x, y, err = appendDigit(x, y, strings.TrimSpace(line)); err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", len(y)+1, err)
		}
	}
	set, err := New(X(x, len(y), digitsSide, digitsSide, 1), Y(y, len(y)))
	if err != nil {
		return nil, nil, err
	}
	return splitDigits(set, testRows)
}

func appendDigit(x []float32, y []int32, line string) ([]float32, []int32, error) {
	for i := range digitsPixels {
		pixel, rest, _ := strings.Cut(line, ",")
		n, err := strconv.ParseUint(pixel, 10, 8)
		if err != nil || n > digitsMax {
			return x, y, fmt.Errorf("column %d is %q, expected a pixel from 0 to %d", i+1, pixel, digitsMax)
		}
		x = append(x, float32(n)/digitsMax)
		line = rest
	}
	label, err := strconv.ParseUint(line, 10, 8)
	if err != nil || label >= digitsLabels {
		return x, y, fmt.Errorf("column %d is %q, expected a label from 0 to %d", digitsPixels+1, line, digitsLabels-1)
	}
	return x, append(y, int32(label)), nil
}

func splitDigits(set *Set, testRows string) (train, test *Set, err error) {
	var rows, rest []int
	chosen := make([]bool, set.Len())
	for word := range strings.FieldsSeq(testRows) {
		row, err := strconv.Atoi(word)
		if err != nil || row < 0 || row >= len(chosen) || chosen[row] {
			return nil, nil, fmt.Errorf("test row %q, expected a new one from 0 to %d", word, len(chosen)-1)
		}
		chosen[row] = true
		rows = append(rows, row)
	}
	for row, c := range chosen {
		if !c {
			rest = append(rest, row)
		}
	}
	return set.gather(rest), set.gather(rows), nil
}

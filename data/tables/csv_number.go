package tables

import "math"

var powersOfTen = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// exactDecimal parses decimals whose digits and power of ten are exact in a float64: one division rounds as
// strconv.ParseFloat (Clinger 1990).
func exactDecimal(cell string) (float64, bool) {
	digits, negative := cell, false
	if numeric(cell) && (cell[0] == '-' || cell[0] == '+') {
		digits, negative = cell[1:], cell[0] == '-'
	}
	if len(digits) == 0 || len(digits) > 17 || digits == "." { // 16 digits do not overflow
		return 0, false
	}
	number, i := uint64(0), 0
	for ; i < len(digits) && digits[i]-'0' <= 9; i++ {
		number = 10*number + uint64(digits[i]-'0')
	}
	behind := 0
	if i < len(digits) {
		if digits[i] != '.' {
			return 0, false
		}
		behind = len(digits) - i - 1
		for i++; i < len(digits); i++ {
			digit := digits[i] - '0'
			if digit > 9 {
				return 0, false
			}
			number = 10*number + uint64(digit)
		}
	}
	if number > 1<<53 {
		return 0, false
	}
	v := float64(number)
	if behind > 0 {
		v /= powersOfTen[behind]
	}
	if negative {
		v = -v
	}
	return v, true
}

func numeric(cell string) bool {
	return len(cell) > 0 && (cell[0]-'0' <= 9 || cell[0] == '-' || cell[0] == '+' || cell[0] == '.')
}

// once: v's float32 is surely the nearest to the exact number.
func once(v float64) bool {
	word := math.Float64bits(v)
	exponent := word >> 52 & 0x7ff
	return word<<1 == 0 || word&(1<<29-1) != 1<<28 && exponent > 1023-120 && exponent < 1023+120
}

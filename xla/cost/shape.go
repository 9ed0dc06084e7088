package cost

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/internal/brackets"
)

type shape struct {
	parts []shape
	tuple bool
	dtype string
	dims  []int
	order []int // axes from minor to major; nil if unknown
	tile  []int
	space int // memory space; 0 is device memory
}

type scanner struct {
	text string
	at   int
}

func (s *scanner) peek() byte {
	for s.at < len(s.text) && s.text[s.at] == ' ' {
		s.at++
	}
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scanner) shape(depth int) (shape, error) {
	if depth > maxDepth {
		return shape{}, fmt.Errorf("a shape of more than %d tuples in each other", maxDepth)
	}
	if s.peek() == '(' {
		s.at++
		made := shape{tuple: true}
		for s.peek() != ')' {
			part, err := s.shape(depth + 1)
			if err != nil {
				return shape{}, err
			}
			made.parts = append(made.parts, part)
			if s.peek() == ',' {
				s.at++
			} else if s.peek() != ')' {
				return shape{}, fmt.Errorf("%.40q: expected the end of a tuple", s.text[s.at:])
			}
		}
		s.at++
		return made, nil
	}
	start := s.at
	for s.at < len(s.text) && (s.text[s.at] >= 'a' && s.text[s.at] <= 'z' || s.text[s.at] >= '0' && s.text[s.at] <= '9' || s.text[s.at] == '_') {
		s.at++
	}
	kind := s.text[start:s.at]
	if kind == "b" && s.peek() == '(' {
		s.at++
		made, err := s.shape(depth + 1)
		if err == nil && s.peek() != ')' {
			err = fmt.Errorf("%.40q: expected the end of a buffer", s.text[s.at:])
		}
		s.at++
		return made, err
	}
	if kind == "" || s.at >= len(s.text) || s.text[s.at] != '[' {
		return shape{}, fmt.Errorf("%.40q: expected a shape", s.text[start:])
	}
	end, err := brackets.Closing(s.text, s.at)
	if err != nil {
		return shape{}, err
	}
	made := shape{dtype: kind}
	inside := strings.ReplaceAll(s.text[s.at+1:end], "<=", "") // a dynamic dimension has memory for its maximum
	if made.dims, err = brackets.Numbers(inside); err != nil {
		return shape{}, fmt.Errorf("shape %s[%s]: %w", kind, inside, err)
	}
	if _, known := bitsOf[kind]; !known {
		return shape{}, fmt.Errorf("shape %s[%s]: an unknown type of number", kind, inside)
	}
	elements := 1.0
	for _, d := range made.dims {
		elements *= float64(max(d, 1))
	}
	if elements > maxElements {
		return shape{}, fmt.Errorf("shape %s[%s]: more than 2^50 elements", kind, inside)
	}
	s.at = end + 1
	if s.at < len(s.text) && s.text[s.at] == '{' {
		end, err := brackets.Closing(s.text, s.at)
		if err != nil {
			return shape{}, err
		}
		if err := made.layout(s.text[s.at+1 : end]); err != nil {
			return shape{}, err
		}
		s.at = end + 1
	}
	return made, nil
}

var (
	tilePattern  = regexp.MustCompile(`T\(([0-9,* ]+)\)`)
	spacePattern = regexp.MustCompile(`S\((\d+)\)`)
)

// layout parses "1,0:T(8,128)(2,1)S(1)".
func (s *shape) layout(text string) error {
	order, rest, _ := strings.Cut(text, ":")
	var err error
	if s.order, err = brackets.Numbers(order); err != nil {
		return fmt.Errorf("layout {%s}: %w", text, err)
	}
	seen := make([]bool, len(s.dims))
	for _, axis := range s.order {
		if axis >= len(seen) || seen[axis] {
			return fmt.Errorf("layout {%s} of %d axes", text, len(s.dims))
		}
		seen[axis] = true
	}
	if s.order != nil && len(s.order) != len(s.dims) {
		return fmt.Errorf("layout {%s} of %d axes", text, len(s.dims))
	}
	if t := tilePattern.FindStringSubmatch(rest); t != nil && !strings.Contains(t[1], "*") {
		if s.tile, err = brackets.Numbers(t[1]); err != nil {
			return err
		}
	}
	if found := spacePattern.FindStringSubmatch(rest); found != nil {
		if s.space, err = strconv.Atoi(found[1]); err != nil {
			return err
		}
	}
	return nil
}

var bitsOf = map[string]int{
	"pred": 8, "s1": 1, "s2": 2, "s4": 4, "s8": 8, "s16": 16, "s32": 32, "s64": 64, "u1": 1, "u2": 2, "u4": 4, "u8": 8, "u16": 16, "u32": 32, "u64": 64,
	"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "c64": 64, "c128": 128, "token": 0, "opaque": 0,
	"f4e2m1fn": 4, "f8e3m4": 8, "f8e4m3": 8, "f8e4m3fn": 8, "f8e4m3b11fnuz": 8, "f8e4m3fnuz": 8, "f8e5m2": 8, "f8e5m2fnuz": 8, "f8e8m0fnu": 8,
}

func (s shape) sum(of func(shape) float64) (sum float64) {
	for _, p := range s.parts {
		sum += of(p)
	}
	return sum
}

func (s shape) elements() float64 {
	if s.tuple {
		return s.sum(shape.elements)
	}
	if s.dtype == "token" || s.dtype == "opaque" {
		return 0
	}
	n := 1.0
	for _, d := range s.dims {
		n *= float64(d)
	}
	return n
}

func (s shape) bytes() float64 {
	if s.tuple {
		return s.sum(shape.bytes)
	}
	return math.Ceil(s.elements() * float64(bitsOf[s.dtype]) / 8)
}

func (s shape) allocated() float64 {
	if s.tuple {
		return s.sum(shape.allocated)
	}
	n := len(s.tile)
	if n == 0 || n > len(s.dims) || len(s.order) != len(s.dims) {
		return s.bytes()
	}
	elements := 1.0
	for i, axis := range s.order { // the last of a tile is for the minor axis
		d := s.dims[axis]
		if i < n {
			if t := s.tile[n-1-i]; t > 0 {
				d = (d + t - 1) / t * t
			}
		}
		elements *= float64(d)
	}
	return math.Ceil(elements * float64(bitsOf[s.dtype]) / 8)
}

func (s shape) String() string {
	if s.tuple {
		parts := make([]string, len(s.parts))
		for i, p := range s.parts {
			parts[i] = p.String()
		}
		return "(" + strings.Join(parts, ", ") + ")"
	}
	dims := make([]string, len(s.dims))
	for i, d := range s.dims {
		dims[i] = strconv.Itoa(d)
	}
	return s.dtype + "[" + strings.Join(dims, ",") + "]"
}

func (s shape) leaves() []shape {
	if !s.tuple {
		return []shape{s}
	}
	var all []shape
	for _, p := range s.parts {
		all = append(all, p.leaves()...)
	}
	return all
}

package checkpoint

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

func partName(tensor string, start, dims []int) string {
	b := append([]byte(tensor), '[')
	for i := range start {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(start[i]), 10)
		b = strconv.AppendInt(append(b, ':'), int64(start[i]+dims[i]), 10)
	}
	return string(append(b, ']'))
}

type shardedTensor struct {
	DType safetensors.DType `json:"dtype"`
	Dims  []int             `json:"dims"`
	Part  []int             `json:"part"`
	Parts []shardPlace      `json:"parts"`
}

type shardPlace struct {
	Rank  int   `json:"rank"`
	Start []int `json:"start"`
	Sum   crc   `json:"crc32c"`
}

func (c *shardedTensor) checkForm() error {
	switch {
	case c.DType.Bits() == 0 || c.DType.Bits()%8 != 0:
		return fmt.Errorf("elements of dtype %v cannot be sharded: expected a whole number of bytes per element", c.DType)
	case len(c.Part) != len(c.Dims):
		return fmt.Errorf("parts of dims %v of a tensor of dims %v", c.Part, c.Dims)
	}
	for i, n := range c.Part {
		if n < 1 || c.Dims[i]%n != 0 {
			return fmt.Errorf("parts of dims %v do not divide dims %v", c.Part, c.Dims)
		}
	}
	_, err := c.whole("").ByteSize()
	return err
}

func (c *shardedTensor) check() error {
	if err := c.checkForm(); err != nil {
		return err
	}
	n := 1
	for i := range c.Dims {
		if n *= c.Dims[i] / c.Part[i]; n > tensorLimit {
			return fmt.Errorf("more than %d parts: %w", tensorLimit, safetensors.ErrLimit)
		}
	}
	if len(c.Parts) != n {
		return fmt.Errorf("%d parts of dims %v, dims %v take %d", len(c.Parts), c.Part, c.Dims, n)
	}
	seen := make([]bool, n)
	for _, p := range c.Parts {
		at, err := c.place(p.Start)
		if err != nil {
			return err
		}
		if p.Rank < 0 || seen[at] {
			return fmt.Errorf("the part that starts at %v appears twice, or has no valid rank (%d)", p.Start, p.Rank)
		}
		seen[at] = true
	}
	return nil
}

func (c *shardedTensor) place(start []int) (int, error) {
	wrong := len(start) != len(c.Dims)
	at := 0
	for i := 0; i < len(c.Dims) && !wrong; i++ {
		wrong = start[i] < 0 || start[i] >= c.Dims[i] || start[i]%c.Part[i] != 0
		at = at*(c.Dims[i]/c.Part[i]) + start[i]/c.Part[i]
	}
	if wrong {
		return 0, fmt.Errorf("a part from %v on: expected one on the grid of %v in dims %v", start, c.Part, c.Dims)
	}
	return at, nil
}

func (c *shardedTensor) whole(name string) safetensors.Tensor {
	return safetensors.Tensor{Name: name, DType: c.DType, Dims: c.Dims}
}

func (c *shardedTensor) part(name string, start []int) safetensors.Tensor {
	return safetensors.Tensor{Name: partName(name, start, c.Part), DType: c.DType, Dims: c.Part}
}

func (c *shardedTensor) paste(whole, part []byte, start []int) {
	last := len(c.Dims) - 1
	if last < 0 {
		copy(whole, part)
		return
	}
	size := c.DType.Bits() / 8
	row := c.Part[last] * size
	index := make([]int, last)
	for len(part) > 0 {
		at := 0
		for i, n := range index {
			at = (at + start[i] + n) * c.Dims[i+1]
		}
		copy(whole[(at+start[last])*size:], part[:row])
		part = part[row:]
		for i := last - 1; i >= 0; i-- {
			if index[i]++; index[i] < c.Part[i] {
				break
			}
			index[i] = 0
		}
	}
}

func parsePart(text string) (tensor string, start []int, ok bool) {
	at := strings.LastIndexByte(text, '[')
	if at < 0 || !strings.HasSuffix(text, "]") {
		return "", nil, false
	}
	for axis := range strings.SplitSeq(text[at+1:len(text)-1], ",") {
		from, _, _ := strings.Cut(axis, ":")
		n, err := strconv.Atoi(from)
		if err != nil {
			return "", nil, false
		}
		start = append(start, n)
	}
	return text[:at], start, true
}

package checkpoint

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
)

const (
	lockName     = "LOCK"
	endName      = "END"
	brokenName   = "BROKEN"
	commitName   = "COMMIT"
	manifestName = "manifest.json"
	stateName    = "state.safetensors"
)

// Step is a number of training steps, which identifies a checkpoint.
type Step int64

type place struct {
	step  Step
	again int
}

func (p place) String() string {
	if p.again == 1 {
		return fmt.Sprintf("step-%012d", p.step)
	}
	return fmt.Sprintf("step-%012d.%d", p.step, p.again)
}

func (p place) compare(o place) int {
	switch {
	case p.step != o.step:
		return sign(p.step < o.step)
	case p.again != o.again:
		return sign(p.again < o.again)
	}
	return 0
}

func sign(less bool) int {
	if less {
		return -1
	}
	return 1
}

var placeForm = regexp.MustCompile(`^step-(\d{12,19})(?:\.(\d{1,9}))?$`)

func parsePlace(name string) (place, bool) {
	m := placeForm.FindStringSubmatch(name)
	if m == nil {
		return place{}, false
	}
	step, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return place{}, false
	}
	p := place{Step(step), 1}
	if m[2] != "" {
		p.again, _ = strconv.Atoi(m[2])
	}
	return p, p.again > 0 && p.String() == name
}

const (
	tempPrefix  = ".tmp-"
	trashPrefix = ".trash-"
)

var staleForm = regexp.MustCompile(`^\.(tmp|trash)-[0-9a-f]{16}$`)

func freshName(prefix string) string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return prefix + hex.EncodeToString(b[:])
}

// Processes exchange a token by a maximum: it is positive.
func freshToken() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return int64(binary.LittleEndian.Uint64(b[:])>>1) | 1
}

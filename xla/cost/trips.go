package cost

import (
	"math"
	"regexp"
	"strconv"
)

var knownTrips = regexp.MustCompile(`"known_trip_count":\{"n":"?(\d+)`)

// From XLA's annotation or a comparison of a counter with a constant.
func trips(i *instruction, body, condition *computation) (float64, bool) {
	if found := knownTrips.FindStringSubmatch(i.attributes["backend_config"]); found != nil {
		n, err := strconv.ParseFloat(found[1], 64)
		return n, err == nil
	}
	compare, operands := compared(condition.root)
	if compare == nil || len(operands) != 2 {
		return 0, false
	}
	direction := compare.attributes["direction"]
	at, isPlace := element(operands[0], condition)
	limit, isNumber := integer(operands[1])
	if !isPlace || !isNumber {
		if at, isPlace = element(operands[1], condition); !isPlace {
			return 0, false
		}
		if limit, isNumber = integer(operands[0]); !isNumber {
			return 0, false
		}
		direction = map[string]string{"GT": "LT", "GE": "LE"}[direction]
	}
	if len(i.operands) != 1 || i.operands[0].opcode != "tuple" || at >= len(i.operands[0].operands) {
		return 0, false
	}
	start, known := integer(i.operands[0].operands[at])
	if !known {
		return 0, false
	}
	step, known := stepOf(body, at)
	if !known || step < 1 {
		return 0, false
	}
	switch direction {
	case "LT":
	case "LE":
		limit++
	default:
		return 0, false
	}
	return math.Max(0, math.Ceil(float64(limit-start)/float64(step))), true
}

func compared(root *instruction) (*instruction, []*instruction) {
	if root.opcode == "compare" {
		return root, root.operands
	}
	return nil, nil
}

func through(i *instruction) *instruction {
	for n := 0; n < maxDepth && (i.opcode == "copy" || i.opcode == "bitcast" || i.opcode == "convert") && len(i.operands) == 1; n++ {
		i = i.operands[0]
	}
	return i
}

func element(i *instruction, of *computation) (int, bool) {
	i = through(i)
	if i.opcode != "get-tuple-element" || len(i.operands) != 1 || i.operands[0].opcode != "parameter" || i.operands[0] != of.parameters[0] {
		return 0, false
	}
	n, err := strconv.Atoi(i.attributes["index"])
	return n, err == nil && n >= 0
}

func integer(i *instruction) (int64, bool) {
	i = through(i)
	if i.opcode != "constant" {
		return 0, false
	}
	n, err := strconv.ParseInt(i.literal, 10, 62)
	return n, err == nil
}

func stepOf(body *computation, at int) (int64, bool) {
	if body.root.opcode != "tuple" || at >= len(body.root.operands) {
		return 0, false
	}
	sum := through(body.root.operands[at])
	if sum.opcode != "add" || len(sum.operands) != 2 {
		return 0, false
	}
	for k := range 2 {
		place, is := element(sum.operands[k], body)
		if step, known := integer(sum.operands[1-k]); is && known && place == at {
			return step, true
		}
	}
	return 0, false
}

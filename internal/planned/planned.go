// Package planned passes a program's training step to `lazo plan`, which runs the program with [Variable] set: package
// xla writes the first training step into a file, and the run ends.
package planned

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/lazo-ml/lazo/internal/regular"
)

// Variable is the environment variable with an [Order] in JSON.
const Variable = "LAZO_PLAN"

type Order struct {
	Plugin   string `json:"plugin"` // name or path
	Topology string `json:"topology"`
	Root     string `json:"root"`
	File     string `json:"file"`
}

type Step struct {
	Name   string         `json:"name"`
	Text   string         `json:"text"` // StableHLO
	Batch  []int          `json:"batch"`
	Inputs []string       `json:"inputs"`
	Where  map[int]string `json:"where"` // lines of user code by line of Text
}

func ParseOrder(value string) (Order, error) {
	var o Order
	err := json.Unmarshal([]byte(value), &o)
	if err == nil && (o.Plugin == "" || o.Topology == "" || o.File == "") {
		err = errors.New("plugin, topology or file is missing")
	}
	if err != nil {
		return Order{}, fmt.Errorf("%s=%.200q: expected what lazo plan sets: %w", Variable, value, err)
	}
	return o, nil
}

func (o Order) Environment() (string, error) {
	text, err := json.Marshal(o)
	return Variable + "=" + string(text), err
}

func (s Step) Write(file string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := regular.Write(file+".part", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".part", file)
}

const limit = 2 << 30

func Read(file string) (Step, error) {
	text, err := regular.Read(file, limit)
	if err != nil {
		return Step{}, err
	}
	var s Step
	return s, json.Unmarshal(text, &s)
}

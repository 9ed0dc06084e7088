package probe_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/probe"
)

// A library that is no plugin can end the child, but never this program.
func ExampleRun() {
	plugin, err := install.Find("cpu", "")
	if err != nil {
		log.Fatal(err)
	}
	report, err := probe.Run(context.Background(), plugin.Path)
	fmt.Println(report.Platform, err)

	text, err := os.CreateTemp("", "plugin-*.so")
	if err != nil {
		log.Fatal(err)
	}
	defer os.Remove(text.Name())
	if _, err := text.WriteString("not a library"); err != nil {
		log.Fatal(err)
	}
	if err := text.Close(); err != nil {
		log.Fatal(err)
	}
	_, err = probe.Run(context.Background(), text.Name())
	fmt.Println(errors.Is(err, probe.ErrDamaged))
	// Output:
	// cpu <nil>
	// true
}

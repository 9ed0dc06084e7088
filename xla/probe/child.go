package probe

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	xlapjrt "github.com/gomlx/go-xla/pkg/pjrt"

	"github.com/lazo-ml/lazo/xla/pjrt"
)

// childName is the argv[0] that turns a program into a check of argv[1].
const childName = "lazo: plugin probe"

// message is one line from the child: the stage it enters, or its last word.
type message struct {
	Stage   Stage    `json:",omitempty"`
	Report  *Report  `json:",omitempty"`
	Failure *failure `json:",omitempty"`
}

func init() {
	if len(os.Args) != 3 || os.Args[0] != childName {
		return
	}
	millis, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err != nil {
		os.Exit(2)
	}
	// A hanging library must not outlive a parent that was killed.
	time.AfterFunc(time.Duration(millis)*time.Millisecond+time.Second, func() { os.Exit(3) })
	pjrt.DieBySignal()
	answers := json.NewEncoder(os.NewFile(3, "answers"))
	report, err := check(os.Args[1], func(s Stage) { _ = answers.Encode(message{Stage: s}) })
	if err != nil {
		_ = answers.Encode(message{Failure: newFailure(err)})
	} else {
		_ = answers.Encode(message{Report: &report})
	}
	os.Exit(0)
}

// check runs in the child.
func check(path string, enter func(Stage)) (report Report, err error) {
	enter(StageLoad)
	if report.Version, err = pjrt.Inspect(path); err != nil {
		return report, err
	}
	enter(StageClient)
	plugin, err := xlapjrt.GetPlugin(path)
	if err != nil {
		return report, fmt.Errorf("%w: %w", ErrNoDevice, err)
	}
	client, err := plugin.NewClient(nil)
	if err != nil {
		return report, fmt.Errorf("%w: %w", ErrNoDevice, err)
	}
	report.Platform, report.PlatformVersion = client.Platform(), client.PlatformVersion()
	for i, device := range client.AddressableDevices() {
		description, err := device.GetDescription()
		if err != nil {
			return report, fmt.Errorf("%w: device %d: %w", ErrNoDevice, i, err)
		}
		report.Devices = append(report.Devices, description.DebugString())
	}
	if len(report.Devices) == 0 {
		return report, fmt.Errorf("%w: the client lists none", ErrNoDevice)
	}
	enter(StageRun)
	sum, err := add(client, 1, 1)
	if err != nil {
		return report, fmt.Errorf("%w: %w", ErrNoDevice, err)
	}
	if sum != 2 {
		return report, fmt.Errorf("%w: the first device computes 1 + 1 = %g", ErrNoDevice, sum)
	}
	return report, nil
}

const addition = `module @probe {
  func.func public @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
    %sum = stablehlo.add %a, %b : tensor<f32>
    return %sum : tensor<f32>
  }
}`

func add(client *xlapjrt.Client, a, b float32) (float32, error) {
	program, err := client.Compile().WithStableHLO([]byte(addition)).Done()
	if err != nil {
		return 0, err
	}
	left, err := xlapjrt.ScalarToBuffer(client, a)
	if err != nil {
		return 0, err
	}
	right, err := xlapjrt.ScalarToBuffer(client, b)
	if err != nil {
		return 0, err
	}
	outputs, err := program.Execute(left, right).Done()
	if err != nil {
		return 0, err
	}
	return xlapjrt.BufferToScalar[float32](outputs[0])
}

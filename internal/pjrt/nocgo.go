//go:build !cgo

package pjrt

import (
	"fmt"
	"unsafe"
)

// [Load] and [Inspect] fail, so no value of these types exists.

const Cgo = false

var errNoCgo = fmt.Errorf("pjrt: %w", ErrNoCgo)

func refuse(path string) error {
	if err := checkFile(path); err != nil {
		return err
	}
	return fmt.Errorf("pjrt: %s: %w: %w", path, ErrNotLoadable, ErrNoCgo)
}

type (
	Buffer     struct{}
	Call       struct{}
	Client     struct{}
	Device     struct{}
	Event      struct{}
	Executable struct{}
	Plugin     struct{}
	Topology   struct{}
	View       struct{ Data []byte }
)

func CanLoad() error                       { return nil }
func FreeBlocks()                          {}
func Inspect(path string) (Version, error) { return Version{}, refuse(path) }
func DieBySignal()                         {}
func Live() Counts                         { return Counts{} }
func Load(path string) (*Plugin, error)    { return nil, refuse(path) }
func WithoutSignals(f func())              { f() }

func (*Buffer) Shape() Shape                       { return Shape{} }
func (*Buffer) Device() *Device                    { return nil }
func (*Buffer) Size() (int64, error)               { return 0, errNoCgo }
func (*Buffer) Ready() (*Event, error)             { return nil, errNoCgo }
func (*Buffer) Delete() error                      { return errNoCgo }
func (*Buffer) IsDeleted() (bool, error)           { return false, errNoCgo }
func (*Buffer) CopyTo(*Device) (*Buffer, error)    { return nil, errNoCgo }
func (*Buffer) Close() error                       { return errNoCgo }
func (*Buffer) ToHost([]byte) error                { return errNoCgo }
func (*Buffer) StartToHost([]byte) (*Event, error) { return nil, errNoCgo }
func (*Buffer) View() (*View, error)               { return nil, errNoCgo }

func (*Call) Set(int, int, *Buffer) error                      { return errNoCgo }
func (*Call) KeepArguments(bool) error                         { return errNoCgo }
func (*Call) Run(...[]byte) ([][]*Buffer, error)               { return nil, errNoCgo }
func (*Call) RunInto([][]byte, ...[]byte) ([][]*Buffer, error) { return nil, errNoCgo }
func (*Call) Start(...[]byte) (*Execution, error)              { return nil, errNoCgo }
func (*Call) StartShared(...[]byte) (*Execution, error)        { return nil, errNoCgo }
func (*Call) Close() error                                     { return errNoCgo }

func (*Client) Plugin() *Plugin                                        { return nil }
func (*Client) Platform() string                                       { return "" }
func (*Client) PlatformVersion() string                                { return "" }
func (*Client) ProcessIndex() int                                      { return 0 }
func (*Client) Devices() []*Device                                     { return nil }
func (*Client) AddressableDevices() []*Device                          { return nil }
func (*Client) Close() error                                           { return errNoCgo }
func (*Client) Compile([]byte, CompileOptions) (*Executable, error)    { return nil, errNoCgo }
func (*Client) CompileHLO([]byte, CompileOptions) (*Executable, error) { return nil, errNoCgo }
func (*Client) Load([]byte) (*Executable, error)                       { return nil, errNoCgo }

func (*Device) ID() int                              { return 0 }
func (*Device) ProcessIndex() int                    { return 0 }
func (*Device) Kind() string                         { return "" }
func (*Device) String() string                       { return "" }
func (*Device) Attributes() (map[string]any, error)  { return nil, errNoCgo }
func (*Device) Memories() ([]Memory, error)          { return nil, errNoCgo }
func (*Device) MemoryStats() (MemoryStats, error)    { return MemoryStats{}, errNoCgo }
func (*Device) Put(Array) (*Buffer, error)           { return nil, errNoCgo }
func (*Device) Share(Array, func()) (*Buffer, error) { return nil, errNoCgo }

func (*Event) Await() error              { return errNoCgo }
func (*Event) Ready() (bool, error)      { return false, errNoCgo }
func (*Event) OnReady(func(error)) error { return errNoCgo }
func (*Event) Close() error              { return errNoCgo }

func (*Executable) OptimizedProgram() ([]byte, string, error)               { return nil, "", errNoCgo }
func (*Executable) Fingerprint() (string, error)                            { return "", errNoCgo }
func (*Executable) Serialize() ([]byte, error)                              { return nil, errNoCgo }
func (*Executable) CostAnalysis() (map[string]any, error)                   { return nil, errNoCgo }
func (*Executable) Memory() (ProgramMemory, error)                          { return ProgramMemory{}, errNoCgo }
func (*Executable) NewCall(CallOptions) (*Call, error)                      { return nil, errNoCgo }
func (*Executable) Name() string                                            { return "" }
func (*Executable) Outputs() []Shape                                        { return nil }
func (*Executable) Devices() []*Device                                      { return nil }
func (*Executable) Parameters() ([]Shape, error)                            { return nil, errNoCgo }
func (*Executable) Donated() (map[int]int, error)                           { return nil, errNoCgo }
func (*Executable) Close() error                                            { return errNoCgo }
func (*Executable) Execute([][]*Buffer, ExecuteOptions) (*Execution, error) { return nil, errNoCgo }

func (*View) Close() error { return errNoCgo }

func (*Plugin) KeepBlocks() error                                        { return errNoCgo }
func (*Plugin) RunInline() error                                         { return errNoCgo }
func (*Plugin) NewClient(map[string]any, KeyValueStore) (*Client, error) { return nil, errNoCgo }
func (*Plugin) RegisterHandler(string, string, unsafe.Pointer) error     { return errNoCgo }
func (*Plugin) Path() string                                             { return "" }
func (*Plugin) Version() Version                                         { return Version{} }
func (*Plugin) Attributes() (map[string]any, error)                      { return nil, errNoCgo }
func (*Plugin) Extensions() []Extension                                  { return nil }
func (*Plugin) NewTopology(string, map[string]any) (*Topology, error)    { return nil, errNoCgo }

func (*Topology) Platform() string                                  { return "" }
func (*Topology) PlatformVersion() string                           { return "" }
func (*Topology) Devices() []DeviceDescription                      { return nil }
func (*Topology) DeviceAttributes() []map[string]any                { return nil }
func (*Topology) Attributes() map[string]any                        { return nil }
func (*Topology) Compile([]byte, CompileOptions) (*Compiled, error) { return nil, errNoCgo }
func (*Topology) Close() error                                      { return errNoCgo }

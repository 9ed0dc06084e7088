// What lazo uses of PJRT's C API, declared by hand. Names are PJRT's with lazo_
// in place of PJRT_, handles are void *, enums are int; header_test.go reads this
// file and holds each struct and field against the published headers.
#ifndef LAZO_PJRT_API_H_
#define LAZO_PJRT_API_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "table.h"

// Every call takes the address of its arguments and gives an error, null for none.
typedef void *(*lazo_function)(void *args);

// The functions of the table at 0.81, in their order. Newer versions add to the end.
#define LAZO_FUNCTIONS(F) \
	F(Error_Destroy) F(Error_Message) F(Error_GetCode) \
	F(Plugin_Initialize) F(Plugin_Attributes) \
	F(Event_Destroy) F(Event_IsReady) F(Event_Error) F(Event_Await) F(Event_OnReady) \
	F(Client_Create) F(Client_Destroy) F(Client_PlatformName) F(Client_ProcessIndex) F(Client_PlatformVersion) \
	F(Client_Devices) F(Client_AddressableDevices) F(Client_LookupDevice) F(Client_LookupAddressableDevice) \
	F(Client_AddressableMemories) F(Client_Compile) F(Client_DefaultDeviceAssignment) F(Client_BufferFromHostBuffer) \
	F(DeviceDescription_Id) F(DeviceDescription_ProcessIndex) F(DeviceDescription_Attributes) \
	F(DeviceDescription_Kind) F(DeviceDescription_DebugString) F(DeviceDescription_ToString) \
	F(Device_GetDescription) F(Device_IsAddressable) F(Device_LocalHardwareId) F(Device_AddressableMemories) \
	F(Device_DefaultMemory) F(Device_MemoryStats) \
	F(Memory_Id) F(Memory_Kind) F(Memory_DebugString) F(Memory_ToString) F(Memory_AddressableByDevices) \
	F(Executable_Destroy) F(Executable_Name) F(Executable_NumReplicas) F(Executable_NumPartitions) \
	F(Executable_NumOutputs) F(Executable_SizeOfGeneratedCodeInBytes) F(Executable_GetCostAnalysis) \
	F(Executable_OutputMemoryKinds) F(Executable_OptimizedProgram) F(Executable_Serialize) \
	F(LoadedExecutable_Destroy) F(LoadedExecutable_GetExecutable) F(LoadedExecutable_AddressableDevices) \
	F(LoadedExecutable_Delete) F(LoadedExecutable_IsDeleted) F(LoadedExecutable_Execute) \
	F(Executable_DeserializeAndLoad) F(LoadedExecutable_Fingerprint) \
	F(Buffer_Destroy) F(Buffer_ElementType) F(Buffer_Dimensions) F(Buffer_UnpaddedDimensions) \
	F(Buffer_DynamicDimensionIndices) F(Buffer_GetMemoryLayout) F(Buffer_OnDeviceSizeInBytes) F(Buffer_Device) \
	F(Buffer_Memory) F(Buffer_Delete) F(Buffer_IsDeleted) F(Buffer_CopyToDevice) F(Buffer_ToHostBuffer) \
	F(Buffer_IsOnCpu) F(Buffer_ReadyEvent) F(Buffer_UnsafePointer) F(Buffer_IncreaseExternalReferenceCount) \
	F(Buffer_DecreaseExternalReferenceCount) F(Buffer_OpaqueDeviceMemoryDataPointer) \
	F(CopyToDeviceStream_Destroy) F(CopyToDeviceStream_AddChunk) F(CopyToDeviceStream_TotalBytes) \
	F(CopyToDeviceStream_GranuleSize) F(CopyToDeviceStream_CurrentBytes) \
	F(TopologyDescription_Create) F(TopologyDescription_Destroy) F(TopologyDescription_PlatformName) \
	F(TopologyDescription_PlatformVersion) F(TopologyDescription_GetDeviceDescriptions) \
	F(TopologyDescription_Serialize) F(TopologyDescription_Attributes) \
	F(Compile) F(Executable_OutputElementTypes) F(Executable_OutputDimensions) F(Buffer_CopyToMemory) \
	F(Client_CreateViewOfDeviceBuffer) F(Executable_Fingerprint) F(Client_TopologyDescription) \
	F(Executable_GetCompiledMemoryStats)

typedef struct {
	lazo_pjrt_table head;
#define LAZO_FIELD(name) lazo_function name;
	LAZO_FUNCTIONS(LAZO_FIELD)
#undef LAZO_FIELD
} lazo_Api;

typedef struct lazo_Extension_Base {
	size_t struct_size;
	int type;
	struct lazo_Extension_Base *next;
} lazo_Extension_Base;

// LAZO_STRUCT declares a struct that begins as all of PJRT's do.
#define LAZO_STRUCT(name, fields) \
	typedef struct { size_t struct_size; void *extension_start; fields } lazo_##name;

LAZO_STRUCT(Error_Destroy_Args, void *error;)
LAZO_STRUCT(Error_Message_Args, void *error; const char *message; size_t message_size;)
LAZO_STRUCT(Error_GetCode_Args, void *error; int code;)

// The value is a union of pointers, numbers and a bool; all lie at int64_value.
LAZO_STRUCT(NamedValue, const char *name; size_t name_size; int type; int64_t int64_value; size_t value_size;)

LAZO_STRUCT(Plugin_Initialize_Args, )
LAZO_STRUCT(Plugin_Attributes_Args, const lazo_NamedValue *attributes; size_t num_attributes;)

LAZO_STRUCT(Event_Destroy_Args, void *event;)
LAZO_STRUCT(Event_IsReady_Args, void *event; bool is_ready;)
LAZO_STRUCT(Event_Error_Args, void *event;)
LAZO_STRUCT(Event_Await_Args, void *event;)
LAZO_STRUCT(Event_OnReady_Args, void *event; void *callback; void *user_arg;)

LAZO_STRUCT(KeyValueGetCallback_Args, const char *key; size_t key_size; int timeout_in_ms; void *callback_error;
	void *user_arg; char *value; size_t value_size; void *value_deleter_callback;)
LAZO_STRUCT(KeyValueTryGetCallback_Args, const char *key; size_t key_size; void *callback_error; void *user_arg;
	char *value; size_t value_size; void *value_deleter_callback;)
LAZO_STRUCT(KeyValuePutCallback_Args, const char *key; size_t key_size; const char *value; size_t value_size;
	void *callback_error; void *user_arg;)

LAZO_STRUCT(Client_Create_Args, const lazo_NamedValue *create_options; size_t num_options; void *kv_get_callback;
	void *kv_get_user_arg; void *kv_put_callback; void *kv_put_user_arg; void *client;
	void *kv_try_get_callback; void *kv_try_get_user_arg;)
LAZO_STRUCT(Client_Destroy_Args, void *client;)
LAZO_STRUCT(Client_PlatformName_Args, void *client; const char *platform_name; size_t platform_name_size;)
LAZO_STRUCT(Client_PlatformVersion_Args, void *client; const char *platform_version; size_t platform_version_size;)
LAZO_STRUCT(Client_ProcessIndex_Args, void *client; int process_index;)
LAZO_STRUCT(Client_Devices_Args, void *client; void **devices; size_t num_devices;)
LAZO_STRUCT(Client_AddressableDevices_Args, void *client; void **addressable_devices; size_t num_addressable_devices;)
LAZO_STRUCT(Program, char *code; size_t code_size; const char *format; size_t format_size;)
LAZO_STRUCT(Client_Compile_Args, void *client; const lazo_Program *program; const char *compile_options;
	size_t compile_options_size; void *executable;)
LAZO_STRUCT(Client_BufferFromHostBuffer_Args, void *client; const void *data; int type; const int64_t *dims;
	size_t num_dims; const int64_t *byte_strides; size_t num_byte_strides; int host_buffer_semantics; void *device;
	void *memory; void *device_layout; void *done_with_host_buffer; void *buffer;)

LAZO_STRUCT(DeviceDescription_Id_Args, void *device_description; int id;)
LAZO_STRUCT(DeviceDescription_ProcessIndex_Args, void *device_description; int process_index;)
LAZO_STRUCT(DeviceDescription_Attributes_Args, void *device_description; size_t num_attributes;
	const lazo_NamedValue *attributes;)
LAZO_STRUCT(DeviceDescription_Kind_Args, void *device_description; const char *device_kind; size_t device_kind_size;)
LAZO_STRUCT(DeviceDescription_DebugString_Args, void *device_description; const char *debug_string;
	size_t debug_string_size;)

LAZO_STRUCT(Device_GetDescription_Args, void *device; void *device_description;)
LAZO_STRUCT(Device_LocalHardwareId_Args, void *device; int local_hardware_id;)
LAZO_STRUCT(Device_AddressableMemories_Args, void *device; void **memories; size_t num_memories;)
LAZO_STRUCT(Device_DefaultMemory_Args, void *device; void *memory;)
LAZO_STRUCT(Device_MemoryStats_Args, void *device; int64_t bytes_in_use;
	int64_t peak_bytes_in_use; bool peak_bytes_in_use_is_set; int64_t num_allocs; bool num_allocs_is_set;
	int64_t largest_alloc_size; bool largest_alloc_size_is_set; int64_t bytes_limit; bool bytes_limit_is_set;
	int64_t bytes_reserved; bool bytes_reserved_is_set; int64_t peak_bytes_reserved; bool peak_bytes_reserved_is_set;
	int64_t bytes_reservable_limit; bool bytes_reservable_limit_is_set;
	int64_t largest_free_block_bytes; bool largest_free_block_bytes_is_set;
	int64_t pool_bytes; bool pool_bytes_is_set; int64_t peak_pool_bytes; bool peak_pool_bytes_is_set;)
LAZO_STRUCT(Memory_Id_Args, void *memory; int id;)
LAZO_STRUCT(Memory_Kind_Args, void *memory; const char *kind; size_t kind_size;)

// A PJRT_TopologyDescription: a machine that need not be there.
LAZO_STRUCT(TopologyDescription_Create_Args, const char *topology_name; size_t topology_name_size;
	const lazo_NamedValue *create_options; size_t num_options; void *topology;)
LAZO_STRUCT(TopologyDescription_Destroy_Args, void *topology;)
LAZO_STRUCT(TopologyDescription_PlatformVersion_Args, void *topology; const char *platform_version;
	size_t platform_version_size;)
LAZO_STRUCT(TopologyDescription_PlatformName_Args, void *topology; const char *platform_name; size_t platform_name_size;)
LAZO_STRUCT(TopologyDescription_GetDeviceDescriptions_Args, void *topology; void *const *descriptions;
	size_t num_descriptions;)
LAZO_STRUCT(TopologyDescription_Attributes_Args, void *topology; const lazo_NamedValue *attributes;
	size_t num_attributes;)
LAZO_STRUCT(Compile_Args, void *topology; const lazo_Program *program; const char *compile_options;
	size_t compile_options_size; void *client; void *executable;)

LAZO_STRUCT(Executable_Destroy_Args, void *executable;)
LAZO_STRUCT(Executable_Name_Args, void *executable; const char *executable_name; size_t executable_name_size;)
LAZO_STRUCT(Executable_NumOutputs_Args, void *executable; size_t num_outputs;)
LAZO_STRUCT(Executable_GetCostAnalysis_Args, void *executable; size_t num_properties; const lazo_NamedValue *properties;)
LAZO_STRUCT(Executable_OptimizedProgram_Args, void *executable; lazo_Program *program;)
LAZO_STRUCT(Executable_Serialize_Args, void *executable; const char *serialized_bytes; size_t serialized_bytes_size;
	void *serialized_executable; void *serialized_executable_deleter;)
LAZO_STRUCT(Executable_DeserializeAndLoad_Args, void *client; const char *serialized_executable;
	size_t serialized_executable_size; void *loaded_executable; const char *overridden_serialized_compile_options;
	size_t overridden_serialized_compile_options_size;)
LAZO_STRUCT(Executable_Fingerprint_Args, void *executable; const char *executable_fingerprint;
	size_t executable_fingerprint_size;)
LAZO_STRUCT(Executable_OutputElementTypes_Args, void *executable; int *output_types; size_t num_output_types;)
LAZO_STRUCT(Executable_OutputDimensions_Args, void *executable; size_t num_outputs; const int64_t *dims;
	const size_t *dim_sizes;)
LAZO_STRUCT(Executable_GetCompiledMemoryStats_Args, void *executable; int64_t generated_code_size_in_bytes;
	int64_t argument_size_in_bytes; int64_t output_size_in_bytes; int64_t alias_size_in_bytes;
	int64_t temp_size_in_bytes; int64_t host_generated_code_size_in_bytes; int64_t host_argument_size_in_bytes;
	int64_t host_output_size_in_bytes; int64_t host_alias_size_in_bytes; int64_t host_temp_size_in_bytes;
	int64_t peak_memory_in_bytes;)
LAZO_STRUCT(LoadedExecutable_Destroy_Args, void *executable;)
LAZO_STRUCT(LoadedExecutable_GetExecutable_Args, void *loaded_executable; void *executable;)
LAZO_STRUCT(LoadedExecutable_AddressableDevices_Args, void *executable; void **addressable_devices;
	size_t num_addressable_devices;)
LAZO_STRUCT(ExecuteOptions, void *send_callbacks; void *recv_callbacks; size_t num_send_ops; size_t num_recv_ops;
	int launch_id; const int64_t *non_donatable_input_indices; size_t num_non_donatable_input_indices;
	void *context; const char *call_location; size_t num_tasks; int *task_ids; int64_t *incarnation_ids;)
LAZO_STRUCT(LoadedExecutable_Execute_Args, void *executable; lazo_ExecuteOptions *options; void ***argument_lists;
	size_t num_devices; size_t num_args; void ***output_lists; void **device_complete_events; void *execute_device;)

LAZO_STRUCT(Buffer_MemoryLayout_Tiled, const int64_t *minor_to_major; size_t minor_to_major_size;
	const int64_t *tile_dims; const size_t *tile_dim_sizes; size_t num_tiles;)
// PJRT has a union here; tiled is its larger member.
LAZO_STRUCT(Buffer_MemoryLayout, lazo_Buffer_MemoryLayout_Tiled tiled; int type;)
LAZO_STRUCT(Buffer_GetMemoryLayout_Args, void *buffer; lazo_Buffer_MemoryLayout layout;)
LAZO_STRUCT(Buffer_Destroy_Args, void *buffer;)
LAZO_STRUCT(Buffer_ToHostBuffer_Args, void *src; lazo_Buffer_MemoryLayout *host_layout; void *dst; size_t dst_size;
	void *event;)
LAZO_STRUCT(Buffer_OnDeviceSizeInBytes_Args, void *buffer; size_t on_device_size_in_bytes;)
LAZO_STRUCT(Buffer_Delete_Args, void *buffer;)
LAZO_STRUCT(Buffer_IsDeleted_Args, void *buffer; bool is_deleted;)
LAZO_STRUCT(Buffer_CopyToDevice_Args, void *buffer; void *dst_device; void *dst_buffer;)
LAZO_STRUCT(Buffer_IsOnCpu_Args, void *buffer; bool is_on_cpu;)
LAZO_STRUCT(Buffer_ReadyEvent_Args, void *buffer; void *event;)
LAZO_STRUCT(Buffer_UnsafePointer_Args, void *buffer; uintptr_t buffer_pointer;)
LAZO_STRUCT(Buffer_OpaqueDeviceMemoryDataPointer_Args, void *buffer; void *device_memory_ptr;)
LAZO_STRUCT(Buffer_IncreaseExternalReferenceCount_Args, void *buffer;)
LAZO_STRUCT(Buffer_DecreaseExternalReferenceCount_Args, void *buffer;)

#define LAZO_CALL(function, args) ((args).struct_size = sizeof(args), (function)((void *)&(args)))

#endif

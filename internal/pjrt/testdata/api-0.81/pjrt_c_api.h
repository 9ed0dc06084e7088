// Where PJRT's C API 0.81 has what api.h declares. Written by TestOldestLayout from the header of the plugin cpu81.
#define PJRT_API_MAJOR 0
#define PJRT_API_MINOR 81
#define PJRT_Api_STRUCT_SIZE 984
#define PJRT_Buffer_Type_INVALID 0
#define PJRT_Buffer_Type_PRED 1
#define PJRT_Buffer_Type_S8 2
#define PJRT_Buffer_Type_S16 3
#define PJRT_Buffer_Type_S32 4
#define PJRT_Buffer_Type_S64 5
#define PJRT_Buffer_Type_U8 6
#define PJRT_Buffer_Type_U16 7
#define PJRT_Buffer_Type_U32 8
#define PJRT_Buffer_Type_U64 9
#define PJRT_Buffer_Type_F16 10
#define PJRT_Buffer_Type_F32 11
#define PJRT_Buffer_Type_F64 12
#define PJRT_Buffer_Type_BF16 13
#define PJRT_Buffer_Type_C64 14
#define PJRT_Buffer_Type_C128 15
#define PJRT_Buffer_Type_F8E5M2 16
#define PJRT_Buffer_Type_F8E4M3FN 17
#define PJRT_Buffer_Type_F8E4M3B11FNUZ 18
#define PJRT_Buffer_Type_F8E5M2FNUZ 19
#define PJRT_Buffer_Type_F8E4M3FNUZ 20
#define PJRT_Buffer_Type_S4 21
#define PJRT_Buffer_Type_U4 22
#define PJRT_Buffer_Type_TOKEN 23
#define PJRT_Buffer_Type_S2 24
#define PJRT_Buffer_Type_U2 25
#define PJRT_Buffer_Type_F8E4M3 26
#define PJRT_Buffer_Type_F8E3M4 27
#define PJRT_Buffer_Type_F8E8M0FNU 28
#define PJRT_Buffer_Type_F4E2M1FN 29
#define PJRT_Error_Code_CANCELLED 1
#define PJRT_Error_Code_UNKNOWN 2
#define PJRT_Error_Code_INVALID_ARGUMENT 3
#define PJRT_Error_Code_DEADLINE_EXCEEDED 4
#define PJRT_Error_Code_NOT_FOUND 5
#define PJRT_Error_Code_ALREADY_EXISTS 6
#define PJRT_Error_Code_PERMISSION_DENIED 7
#define PJRT_Error_Code_RESOURCE_EXHAUSTED 8
#define PJRT_Error_Code_FAILED_PRECONDITION 9
#define PJRT_Error_Code_ABORTED 10
#define PJRT_Error_Code_OUT_OF_RANGE 11
#define PJRT_Error_Code_UNIMPLEMENTED 12
#define PJRT_Error_Code_INTERNAL 13
#define PJRT_Error_Code_UNAVAILABLE 14
#define PJRT_Error_Code_DATA_LOSS 15
#define PJRT_Error_Code_UNAUTHENTICATED 16
#define PJRT_NamedValue_kString 0
#define PJRT_NamedValue_kInt64 1
#define PJRT_NamedValue_kInt64List 2
#define PJRT_NamedValue_kFloat 3
#define PJRT_NamedValue_kBool 4
#define PJRT_Buffer_MemoryLayout_Type_Tiled 0
#define PJRT_HostBufferSemantics_kImmutableOnlyDuringCall 0
#define PJRT_HostBufferSemantics_kImmutableZeroCopy 2
#define PJRT_Extension_Type_HostAllocator 15
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char error[8];
} PJRT_Error_Destroy_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char error[8];
	char message[8];
	char message_size[8];
} PJRT_Error_Message_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char error[8];
	char code[4];
	char gap0[4];
} PJRT_Error_GetCode_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char name[8];
	char name_size[8];
	char type[4];
	char gap0[4];
	char int64_value[8];
	char value_size[8];
} PJRT_NamedValue;
typedef struct {
	char struct_size[8];
	char extension_start[8];
} PJRT_Plugin_Initialize_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char attributes[8];
	char num_attributes[8];
} PJRT_Plugin_Attributes_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char event[8];
} PJRT_Event_Destroy_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char event[8];
	char is_ready[1];
	char gap0[7];
} PJRT_Event_IsReady_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char event[8];
} PJRT_Event_Error_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char event[8];
} PJRT_Event_Await_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char event[8];
	char callback[8];
	char user_arg[8];
} PJRT_Event_OnReady_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char key[8];
	char key_size[8];
	char timeout_in_ms[4];
	char gap0[4];
	char callback_error[8];
	char user_arg[8];
	char value[8];
	char value_size[8];
	char value_deleter_callback[8];
} PJRT_KeyValueGetCallback_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char key[8];
	char key_size[8];
	char callback_error[8];
	char user_arg[8];
	char value[8];
	char value_size[8];
	char value_deleter_callback[8];
} PJRT_KeyValueTryGetCallback_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char key[8];
	char key_size[8];
	char value[8];
	char value_size[8];
	char callback_error[8];
	char user_arg[8];
} PJRT_KeyValuePutCallback_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char create_options[8];
	char num_options[8];
	char kv_get_callback[8];
	char kv_get_user_arg[8];
	char kv_put_callback[8];
	char kv_put_user_arg[8];
	char client[8];
	char kv_try_get_callback[8];
	char kv_try_get_user_arg[8];
} PJRT_Client_Create_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char client[8];
} PJRT_Client_Destroy_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char client[8];
	char platform_name[8];
	char platform_name_size[8];
} PJRT_Client_PlatformName_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char client[8];
	char platform_version[8];
	char platform_version_size[8];
} PJRT_Client_PlatformVersion_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char client[8];
	char process_index[4];
	char gap0[4];
} PJRT_Client_ProcessIndex_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char client[8];
	char devices[8];
	char num_devices[8];
} PJRT_Client_Devices_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char client[8];
	char addressable_devices[8];
	char num_addressable_devices[8];
} PJRT_Client_AddressableDevices_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char code[8];
	char code_size[8];
	char format[8];
	char format_size[8];
} PJRT_Program;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char client[8];
	char program[8];
	char compile_options[8];
	char compile_options_size[8];
	char executable[8];
} PJRT_Client_Compile_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char client[8];
	char data[8];
	char type[4];
	char gap0[4];
	char dims[8];
	char num_dims[8];
	char byte_strides[8];
	char num_byte_strides[8];
	char host_buffer_semantics[4];
	char gap1[4];
	char device[8];
	char memory[8];
	char device_layout[8];
	char done_with_host_buffer[8];
	char buffer[8];
} PJRT_Client_BufferFromHostBuffer_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char device_description[8];
	char id[4];
	char gap0[4];
} PJRT_DeviceDescription_Id_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char device_description[8];
	char process_index[4];
	char gap0[4];
} PJRT_DeviceDescription_ProcessIndex_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char device_description[8];
	char num_attributes[8];
	char attributes[8];
} PJRT_DeviceDescription_Attributes_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char device_description[8];
	char device_kind[8];
	char device_kind_size[8];
} PJRT_DeviceDescription_Kind_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char device_description[8];
	char debug_string[8];
	char debug_string_size[8];
} PJRT_DeviceDescription_DebugString_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char device[8];
	char device_description[8];
} PJRT_Device_GetDescription_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char device[8];
	char local_hardware_id[4];
	char gap0[4];
} PJRT_Device_LocalHardwareId_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char device[8];
	char memories[8];
	char num_memories[8];
} PJRT_Device_AddressableMemories_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char device[8];
	char memory[8];
} PJRT_Device_DefaultMemory_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char device[8];
	char bytes_in_use[8];
	char peak_bytes_in_use[8];
	char peak_bytes_in_use_is_set[1];
	char gap0[7];
	char num_allocs[8];
	char num_allocs_is_set[1];
	char gap1[7];
	char largest_alloc_size[8];
	char largest_alloc_size_is_set[1];
	char gap2[7];
	char bytes_limit[8];
	char bytes_limit_is_set[1];
	char gap3[7];
	char bytes_reserved[8];
	char bytes_reserved_is_set[1];
	char gap4[7];
	char peak_bytes_reserved[8];
	char peak_bytes_reserved_is_set[1];
	char gap5[7];
	char bytes_reservable_limit[8];
	char bytes_reservable_limit_is_set[1];
	char gap6[7];
	char largest_free_block_bytes[8];
	char largest_free_block_bytes_is_set[1];
	char gap7[7];
	char pool_bytes[8];
	char pool_bytes_is_set[1];
	char gap8[7];
	char peak_pool_bytes[8];
	char peak_pool_bytes_is_set[1];
	char gap9[7];
} PJRT_Device_MemoryStats_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char memory[8];
	char id[4];
	char gap0[4];
} PJRT_Memory_Id_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char memory[8];
	char kind[8];
	char kind_size[8];
} PJRT_Memory_Kind_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char topology_name[8];
	char topology_name_size[8];
	char create_options[8];
	char num_options[8];
	char topology[8];
} PJRT_TopologyDescription_Create_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char topology[8];
} PJRT_TopologyDescription_Destroy_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char topology[8];
	char platform_version[8];
	char platform_version_size[8];
} PJRT_TopologyDescription_PlatformVersion_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char topology[8];
	char platform_name[8];
	char platform_name_size[8];
} PJRT_TopologyDescription_PlatformName_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char topology[8];
	char descriptions[8];
	char num_descriptions[8];
} PJRT_TopologyDescription_GetDeviceDescriptions_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char topology[8];
	char attributes[8];
	char num_attributes[8];
} PJRT_TopologyDescription_Attributes_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char topology[8];
	char program[8];
	char compile_options[8];
	char compile_options_size[8];
	char client[8];
	char executable[8];
} PJRT_Compile_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char executable[8];
} PJRT_Executable_Destroy_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char executable[8];
	char executable_name[8];
	char executable_name_size[8];
} PJRT_Executable_Name_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char executable[8];
	char num_outputs[8];
} PJRT_Executable_NumOutputs_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char executable[8];
	char num_properties[8];
	char properties[8];
} PJRT_Executable_GetCostAnalysis_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char executable[8];
	char program[8];
} PJRT_Executable_OptimizedProgram_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char executable[8];
	char serialized_bytes[8];
	char serialized_bytes_size[8];
	char serialized_executable[8];
	char serialized_executable_deleter[8];
} PJRT_Executable_Serialize_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char client[8];
	char serialized_executable[8];
	char serialized_executable_size[8];
	char loaded_executable[8];
	char overridden_serialized_compile_options[8];
	char overridden_serialized_compile_options_size[8];
} PJRT_Executable_DeserializeAndLoad_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char executable[8];
	char executable_fingerprint[8];
	char executable_fingerprint_size[8];
} PJRT_Executable_Fingerprint_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char executable[8];
	char output_types[8];
	char num_output_types[8];
} PJRT_Executable_OutputElementTypes_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char executable[8];
	char num_outputs[8];
	char dims[8];
	char dim_sizes[8];
} PJRT_Executable_OutputDimensions_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char executable[8];
	char generated_code_size_in_bytes[8];
	char argument_size_in_bytes[8];
	char output_size_in_bytes[8];
	char alias_size_in_bytes[8];
	char temp_size_in_bytes[8];
	char host_generated_code_size_in_bytes[8];
	char host_argument_size_in_bytes[8];
	char host_output_size_in_bytes[8];
	char host_alias_size_in_bytes[8];
	char host_temp_size_in_bytes[8];
	char peak_memory_in_bytes[8];
} PJRT_Executable_GetCompiledMemoryStats_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char executable[8];
} PJRT_LoadedExecutable_Destroy_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char loaded_executable[8];
	char executable[8];
} PJRT_LoadedExecutable_GetExecutable_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char executable[8];
	char addressable_devices[8];
	char num_addressable_devices[8];
} PJRT_LoadedExecutable_AddressableDevices_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char send_callbacks[8];
	char recv_callbacks[8];
	char num_send_ops[8];
	char num_recv_ops[8];
	char launch_id[4];
	char gap0[4];
	char non_donatable_input_indices[8];
	char num_non_donatable_input_indices[8];
	char context[8];
	char call_location[8];
	char num_tasks[8];
	char task_ids[8];
	char incarnation_ids[8];
} PJRT_ExecuteOptions;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char executable[8];
	char options[8];
	char argument_lists[8];
	char num_devices[8];
	char num_args[8];
	char output_lists[8];
	char device_complete_events[8];
	char execute_device[8];
} PJRT_LoadedExecutable_Execute_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char minor_to_major[8];
	char minor_to_major_size[8];
	char tile_dims[8];
	char tile_dim_sizes[8];
	char num_tiles[8];
} PJRT_Buffer_MemoryLayout_Tiled;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char tiled[56];
	char type[4];
	char gap0[4];
} PJRT_Buffer_MemoryLayout;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char buffer[8];
	char layout[80];
} PJRT_Buffer_GetMemoryLayout_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char buffer[8];
} PJRT_Buffer_Destroy_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char src[8];
	char host_layout[8];
	char dst[8];
	char dst_size[8];
	char event[8];
} PJRT_Buffer_ToHostBuffer_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char buffer[8];
	char on_device_size_in_bytes[8];
} PJRT_Buffer_OnDeviceSizeInBytes_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char buffer[8];
} PJRT_Buffer_Delete_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char buffer[8];
	char is_deleted[1];
	char gap0[7];
} PJRT_Buffer_IsDeleted_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char buffer[8];
	char dst_device[8];
	char dst_buffer[8];
} PJRT_Buffer_CopyToDevice_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char buffer[8];
	char is_on_cpu[1];
	char gap0[7];
} PJRT_Buffer_IsOnCpu_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char buffer[8];
	char event[8];
} PJRT_Buffer_ReadyEvent_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char buffer[8];
	char buffer_pointer[8];
} PJRT_Buffer_UnsafePointer_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char buffer[8];
	char device_memory_ptr[8];
} PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char buffer[8];
} PJRT_Buffer_IncreaseExternalReferenceCount_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char buffer[8];
} PJRT_Buffer_DecreaseExternalReferenceCount_Args;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char pjrt_api_version[24];
	char PJRT_Error_Destroy[8];
	char PJRT_Error_Message[8];
	char PJRT_Error_GetCode[8];
	char PJRT_Plugin_Initialize[8];
	char PJRT_Plugin_Attributes[8];
	char PJRT_Event_Destroy[8];
	char PJRT_Event_IsReady[8];
	char PJRT_Event_Error[8];
	char PJRT_Event_Await[8];
	char PJRT_Event_OnReady[8];
	char PJRT_Client_Create[8];
	char PJRT_Client_Destroy[8];
	char PJRT_Client_PlatformName[8];
	char PJRT_Client_ProcessIndex[8];
	char PJRT_Client_PlatformVersion[8];
	char PJRT_Client_Devices[8];
	char PJRT_Client_AddressableDevices[8];
	char PJRT_Client_LookupDevice[8];
	char PJRT_Client_LookupAddressableDevice[8];
	char PJRT_Client_AddressableMemories[8];
	char PJRT_Client_Compile[8];
	char PJRT_Client_DefaultDeviceAssignment[8];
	char PJRT_Client_BufferFromHostBuffer[8];
	char PJRT_DeviceDescription_Id[8];
	char PJRT_DeviceDescription_ProcessIndex[8];
	char PJRT_DeviceDescription_Attributes[8];
	char PJRT_DeviceDescription_Kind[8];
	char PJRT_DeviceDescription_DebugString[8];
	char PJRT_DeviceDescription_ToString[8];
	char PJRT_Device_GetDescription[8];
	char PJRT_Device_IsAddressable[8];
	char PJRT_Device_LocalHardwareId[8];
	char PJRT_Device_AddressableMemories[8];
	char PJRT_Device_DefaultMemory[8];
	char PJRT_Device_MemoryStats[8];
	char PJRT_Memory_Id[8];
	char PJRT_Memory_Kind[8];
	char PJRT_Memory_DebugString[8];
	char PJRT_Memory_ToString[8];
	char PJRT_Memory_AddressableByDevices[8];
	char PJRT_Executable_Destroy[8];
	char PJRT_Executable_Name[8];
	char PJRT_Executable_NumReplicas[8];
	char PJRT_Executable_NumPartitions[8];
	char PJRT_Executable_NumOutputs[8];
	char PJRT_Executable_SizeOfGeneratedCodeInBytes[8];
	char PJRT_Executable_GetCostAnalysis[8];
	char PJRT_Executable_OutputMemoryKinds[8];
	char PJRT_Executable_OptimizedProgram[8];
	char PJRT_Executable_Serialize[8];
	char PJRT_LoadedExecutable_Destroy[8];
	char PJRT_LoadedExecutable_GetExecutable[8];
	char PJRT_LoadedExecutable_AddressableDevices[8];
	char PJRT_LoadedExecutable_Delete[8];
	char PJRT_LoadedExecutable_IsDeleted[8];
	char PJRT_LoadedExecutable_Execute[8];
	char PJRT_Executable_DeserializeAndLoad[8];
	char PJRT_LoadedExecutable_Fingerprint[8];
	char PJRT_Buffer_Destroy[8];
	char PJRT_Buffer_ElementType[8];
	char PJRT_Buffer_Dimensions[8];
	char PJRT_Buffer_UnpaddedDimensions[8];
	char PJRT_Buffer_DynamicDimensionIndices[8];
	char PJRT_Buffer_GetMemoryLayout[8];
	char PJRT_Buffer_OnDeviceSizeInBytes[8];
	char PJRT_Buffer_Device[8];
	char PJRT_Buffer_Memory[8];
	char PJRT_Buffer_Delete[8];
	char PJRT_Buffer_IsDeleted[8];
	char PJRT_Buffer_CopyToDevice[8];
	char PJRT_Buffer_ToHostBuffer[8];
	char PJRT_Buffer_IsOnCpu[8];
	char PJRT_Buffer_ReadyEvent[8];
	char PJRT_Buffer_UnsafePointer[8];
	char PJRT_Buffer_IncreaseExternalReferenceCount[8];
	char PJRT_Buffer_DecreaseExternalReferenceCount[8];
	char PJRT_Buffer_OpaqueDeviceMemoryDataPointer[8];
	char PJRT_CopyToDeviceStream_Destroy[8];
	char PJRT_CopyToDeviceStream_AddChunk[8];
	char PJRT_CopyToDeviceStream_TotalBytes[8];
	char PJRT_CopyToDeviceStream_GranuleSize[8];
	char PJRT_CopyToDeviceStream_CurrentBytes[8];
	char PJRT_TopologyDescription_Create[8];
	char PJRT_TopologyDescription_Destroy[8];
	char PJRT_TopologyDescription_PlatformName[8];
	char PJRT_TopologyDescription_PlatformVersion[8];
	char PJRT_TopologyDescription_GetDeviceDescriptions[8];
	char PJRT_TopologyDescription_Serialize[8];
	char PJRT_TopologyDescription_Attributes[8];
	char PJRT_Compile[8];
	char PJRT_Executable_OutputElementTypes[8];
	char PJRT_Executable_OutputDimensions[8];
	char PJRT_Buffer_CopyToMemory[8];
	char PJRT_Client_CreateViewOfDeviceBuffer[8];
	char PJRT_Executable_Fingerprint[8];
	char PJRT_Client_TopologyDescription[8];
	char PJRT_Executable_GetCompiledMemoryStats[8];
	char gap0[168];
} PJRT_Api;
typedef struct {
	char struct_size[8];
	char extension_start[8];
	char major_version[4];
	char minor_version[4];
} PJRT_Api_Version;
typedef struct {
	char struct_size[8];
	char type[4];
	char gap0[4];
	char next[8];
} PJRT_Extension_Base;

module @replicas attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%p0: tensor<f32>) -> (tensor<f32>) {
    %2 = "stablehlo.all_reduce"(%p0) ({
      ^computation(%arg1: tensor<f32>, %arg2: tensor<f32>) :
          %1 = "stablehlo.add"(%arg1, %arg2) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%1) : (tensor<f32>) -> ()
    }) { replica_groups = dense<[[0, 1]]> : tensor<1x2xi64> } : (tensor<f32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}

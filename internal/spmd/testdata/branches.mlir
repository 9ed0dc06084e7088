module @branches {
  sdy.mesh @mesh = <["data"=2]>
  func.func public @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %n: tensor<i32>) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
    %r = sdy.manual_computation(%x, %n) in_shardings=[<@mesh, [{"data"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{"data"}, {}]>] manual_axes={"data"} (%y: tensor<4x4xf32>, %i: tensor<i32>) {
      %two = stablehlo.constant dense<2> : tensor<i32>
      %k = stablehlo.remainder %i, %two : tensor<i32>
      %a = "stablehlo.case"(%k) ({
        stablehlo.return %y : tensor<4x4xf32>
      }, {
        %s = "stablehlo.all_reduce"(%y) ({
        ^bb0(%l: tensor<f32>, %m: tensor<f32>):
          %t = stablehlo.add %l, %m : tensor<f32>
          stablehlo.return %t : tensor<f32>
        }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids} : (tensor<4x4xf32>) -> tensor<4x4xf32>
        stablehlo.return %s : tensor<4x4xf32>
      }) : (tensor<i32>) -> tensor<4x4xf32>
      %b = "stablehlo.case"(%i) ({
        stablehlo.return %a : tensor<4x4xf32>
      }, {
        %u = stablehlo.negate %a : tensor<4x4xf32>
        stablehlo.return %u : tensor<4x4xf32>
      }, {
        %s = "stablehlo.all_reduce"(%a) ({
        ^bb0(%l: tensor<f32>, %m: tensor<f32>):
          %t = stablehlo.maximum %l, %m : tensor<f32>
          stablehlo.return %t : tensor<f32>
        }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, use_global_device_ids} : (tensor<4x4xf32>) -> tensor<4x4xf32>
        stablehlo.return %s : tensor<4x4xf32>
      }) : (tensor<i32>) -> tensor<4x4xf32>
      sdy.return %b : tensor<4x4xf32>
    } : (tensor<8x4xf32>, tensor<i32>) -> tensor<8x4xf32>
    return %r : tensor<8x4xf32>
  }
}

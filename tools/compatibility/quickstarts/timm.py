"""timm: the smallest model of every family, built, run forward and backward in training mode."""

import timm
import torch


def model(name, size, double=False, **options):
    """`double`: in double precision, where normalizing two small pictures makes much of the last bits of float32."""

    def start():
        network = timm.create_model(name, num_classes=10, **options)
        images = torch.rand(2, 3, size, size)
        if double:
            network, images = network.double(), images.double()
        network.train()

        def forward(images, labels):
            logits = network(images)
            logits = logits[0] if isinstance(logits, tuple) else logits
            return logits, torch.nn.functional.cross_entropy(logits, labels)

        return network, forward, (images, torch.tensor([1, 2]))

    def run():
        network, forward, inputs = start()
        logits, loss = forward(*inputs)
        loss.backward()
        norms = [each.grad.double().norm() for each in network.parameters() if each.grad is not None]
        return {"logits": logits, "loss": loss, "gradient": torch.stack(norms).norm(), "first": norms[0]}

    run.start = start  # for `tools.compile_sweep`, which trains
    return run


CASES = {
    "beit": model("beit_base_patch16_224", 112, depth=2, img_size=112),
    "byoanet": model("halonet_h1", 256),
    "byobnet": model("test_byobnet", 64),
    "cait": model("cait_xxs24_224", 112, img_size=112),
    "coat": model("coat_tiny", 224),
    "convit": model("convit_tiny", 112, img_size=112),
    "convmixer": model("convmixer_768_32", 64, double=True),
    "convnext": model("test_convnext", 64),
    "cpubone": model("cpubone_nano", 64),
    "crossvit": model("crossvit_tiny_240", 120, img_size=120),
    "csatv2": model("csatv2", 64),
    "cspnet": model("cs3darknet_focus_s", 64),
    "davit": model("davit_tiny", 64),
    "deepseek_vit": model("deepseek_vit_412m", 112, depth=1),
    "deit": model("deit_tiny_patch16_224", 112, img_size=112),
    "densenet": model("densenet121", 64),
    "dla": model("dla46x_c", 64, double=True),
    "dpn": model("dpn48b", 64, double=True),
    "edgenext": model("edgenext_xx_small", 64),
    "efficientformer": model("efficientformer_l1", 224),
    "efficientformer_v2": model("efficientformerv2_s0", 224),
    "efficientnet": model("mnasnet_small", 64),
    "efficientvim": model("efficientvim_m1", 64, double=True),
    "efficientvit_mit": model("efficientvit_b0", 64),
    "efficientvit_msra": model("efficientvit_m0", 112, img_size=112),
    "eva": model("eva02_tiny_patch14_224", 112, img_size=112),
    "fasternet": model("fasternet_t0", 64),
    "fastvit": model("fastvit_t8", 64),
    "focalnet": model("focalnet_tiny_srf", 64),
    "gcvit": model("gcvit_xxtiny", 224),
    "gemma4_vit": model("gemma4_vit_167m", 64, depth=1),
    "ghostnet": model("ghostnet_050", 64),
    "hardcorenas": model("hardcorenas_b", 64),
    "hgnet": model("hgnetv2_b0", 64),
    "hiera": model("hiera_tiny_224", 224),
    "hieradet_sam2": model("sam2_hiera_tiny", 64),
    "hrnet": model("hrnet_w18_small", 64),
    "iformer": model("iformer_t", 64),
    "inception_next": model("inception_next_atto", 64),
    "inception_resnet_v2": model("inception_resnet_v2", 96, double=True),
    # At 96 pixels its last layers normalize two single numbers, which makes 0.05 in the logits of the last bits of the
    # initial weights; with PyTorch's weights the difference there is 1e-8.
    "inception_v3": model("inception_v3", 160, double=True),
    "inception_v4": model("inception_v4", 96, double=True),
    "lcnetv2": model("lcnetv2_small", 64, double=True),
    "levit": model("levit_128s", 112, img_size=112),
    "lowformer": model("lowformer_b0", 64),
    "mambaout": model("test_mambaout", 64),
    "maxxvit": model("maxvit_pico_rw_256", 128, img_size=128),
    "metaformer": model("poolformerv2_s12", 64),
    "mlp_mixer": model("gmlp_ti16_224", 112, img_size=112),
    "mobilenetv3": model("mobilenetv3_small_050", 64),
    "mobilenetv5": model("mobilenetv5_base", 64),
    "mobilevit": model("mobilevit_xxs", 64),
    "mvitv2": model("mvitv2_tiny", 224),
    "naflexvit": model("naflexvit_base_patch16_parfac_gap", 64, depth=2),
    "nasnet": model("nasnetalarge", 64, double=True),
    "nest": model("nest_tiny", 112, img_size=112),
    "nextvit": model("nextvit_small", 64),
    "nfnet": model("test_nfnet", 64),
    "pit": model("pit_ti_224", 112, img_size=112),
    "pnasnet": model("pnasnet5large", 64, double=True),
    "pvt_v2": model("pvt_v2_b0", 64),
    "qwen3_vit": model("qwen3_vit_88m", 64, depth=2),
    "rdnet": model("rdnet_tiny", 64),
    "regnet": model("regnetx_002", 64),
    "repghost": model("repghostnet_050", 64),
    "repvit": model("repvit_m1", 64),
    "res2net": model("res2next50", 64),
    "resnest": model("resnest14d", 64),
    "resnet": model("resnet10t", 64),
    "resnetv2": model("resnetv2_18", 64),
    "rexnet": model("rexnet_100", 64, double=True),
    "selecsls": model("selecsls42", 64, double=True),
    "senet": model("legacy_seresnet18", 64),
    "sequencer": model("sequencer2d_s", 112, img_size=112),
    "shvit": model("shvit_s1", 64),
    "sknet": model("skresnet18", 64),
    "starnet": model("starnet_s050", 64),
    "swiftformer": model("swiftformer_xs", 112, img_size=112),
    "swin_transformer": model("swin_tiny_patch4_window7_224", 112, img_size=112),
    "swin_transformer_v2": model("swinv2_tiny_window8_256", 128, img_size=128),
    "swin_transformer_v2_cr": model("swinv2_cr_tiny_224", 224),
    "tiny_vit": model("tiny_vit_5m_224", 64),
    "tnt": model("tnt_s_legacy_patch16_224", 112, img_size=112),
    "tresnet": model("tresnet_m", 64),
    "twins": model("twins_svt_small", 224),
    "vgg": model("vgg11", 64),
    "visformer": model("visformer_tiny", 112, img_size=112),
    "vision_transformer": model("test_vit", 64, img_size=64),
    "vision_transformer_hybrid": model("vit_tiny_r_s16_p8_224", 224),
    "vision_transformer_relpos": model("vit_srelpos_small_patch16_224", 112, img_size=112),
    "vision_transformer_sam": model("samvit_base_patch16_224", 112, depth=2, img_size=112),
    "vitamin": model("vitamin_small_224", 112, img_size=112),
    "volo": model("volo_d1_224", 112, img_size=112),
    "vovnet": model("ese_vovnet19b_slim_dw", 64),
    "xception": model("legacy_xception", 64),
    "xception_aligned": model("xception41p", 64),
    "xcit": model("xcit_nano_12_p8_224", 112, img_size=112),
}

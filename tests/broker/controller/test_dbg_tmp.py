import asyncio
from tests.broker.controller.scene import GroupScene
from tests.broker.controller.test_autoscaling import *
async def test_dbg(broker, topic, tmp_path):
    async with GroupScene(broker, topic, tmp_path, replicas=1, **SLOW) as scene:
        scene.environment["ROCKETFLEET_DEMO_HANDLER_SECONDS"] = "0.025"
        scene.apply(); scene.rate=110; scene.begin_traffic()
        for _ in range(14):
            await asyncio.sleep(1)
            f=scene.monitor.latest(scene.key)
            print(f and (f.messages,f.seconds,f.retry,f.unknown,f.consume_rate,[(r.lag,r.seconds) for r in f.queues][:3]))

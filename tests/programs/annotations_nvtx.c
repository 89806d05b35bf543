/* Speaks NVTX by its headers: domains, registered strings, colours, payloads, counters; on two OpenMP threads. */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    int pushed = nvtxRangePushA("outer");
    int popped = nvtxRangePop();
    printf("%d %d %d\n", pushed, popped, nvtxRangePop());
    nvtxDomainHandle_t domain = nvtxDomainCreateA("solver");
    nvtxStringHandle_t step = nvtxDomainRegisterStringA(domain, "step");
    nvtxEventAttributes_t event;
    memset(&event, 0, sizeof event);
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.colorType = NVTX_COLOR_ARGB;
    event.color = 0xff00ff00;
    event.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    event.payload.dValue = 0.5;
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = step;
    for (int i = 0; i < 10; i++) {
        nvtxDomainRangePushEx(domain, &event);
        nvtxDomainRangePop(domain);
    }
    #pragma omp parallel num_threads(2)
    {
        #pragma omp single
        {
            nvtxDomainRangePushEx(domain, &event);
            nvtxDomainRangePop(domain);
        }
    }
    nvtxRangeId_t range = nvtxDomainRangeStartEx(domain, &event);
    nvtxDomainRangeEnd(domain, range);
    nvtxCounterAttr_t counter;
    memset(&counter, 0, sizeof counter);
    counter.structSize = sizeof counter;
    counter.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE;
    counter.name = "residual";
    counter.scopeId = NVTX_SCOPE_CURRENT_SW_PROCESS;
    uint64_t id = nvtxCounterRegister(domain, &counter);
    nvtxCounterSampleFloat64(domain, id, 0.25);
    int number = 4;
    nvtxPayloadData_t payload = {NVTX_PAYLOAD_ENTRY_TYPE_INT32, sizeof number, &number};
    nvtxRangePushPayload(domain, &payload, 1);
    nvtxRangePopPayload(domain, &payload, 1);
    nvtxDomainDestroy(domain);
    return 0;
}

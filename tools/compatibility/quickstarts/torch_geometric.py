"""PyTorch Geometric: four graph convolutions on a ring with chords, batches of graphs and pooling."""

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, global_mean_pool
from torch_geometric.utils import add_self_loops, degree, to_dense_adj


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = GCNConv(4, 16)
        self.conv2 = GATConv(16, 8, heads=2)
        self.conv3 = SAGEConv(16, 8)
        self.conv4 = GINConv(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()))
        self.head = torch.nn.Linear(8, 2)

    def forward(self, x, edges, batch):
        x = self.conv1(x, edges).relu()
        x = self.conv2(x, edges).relu()
        x = self.conv3(x, edges).relu()
        x = self.conv4(x, edges)
        return self.head(global_mean_pool(x, batch))


def graph(nodes, label):
    around = torch.arange(nodes)
    edges = torch.stack([around, (around + 1 + label) % nodes])
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    return Data(x=torch.randn(nodes, 4), edge_index=edges, y=torch.tensor([label]))


def main():
    graphs = [graph(5 + number % 4, number % 2) for number in range(12)]
    model = Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        for batch in DataLoader(graphs, batch_size=4, shuffle=True):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    edges, _ = add_self_loops(graphs[0].edge_index)
    return {
        "losses": losses,
        "degree": degree(edges[0]),
        "dense": to_dense_adj(graphs[0].edge_index),
        "weight": model.conv1.lin.weight,
    }
